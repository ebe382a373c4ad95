"""What runs leave behind: logs with times, finished results, and where to tell MLflow of them. No
MLflow.
"""
