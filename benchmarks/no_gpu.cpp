// A CPU build of torch knows no CUDA. This guard and these hooks do nothing: enough for fake tensors
// that say they lie on a GPU, and for autograd over them. One device, one stream, no events.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

struct Guard : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  static c10::Device first() { return c10::Device(c10::DeviceType::CUDA, 0); }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, first()); }
  c10::Device exchangeDevice(c10::Device) const override { return first(); }
  c10::Device getDevice() const override { return first(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

namespace at {
struct CUDAHooks : CUDAHooksInterface {  // found by this name
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at
