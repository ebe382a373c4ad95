"""Systems that a network is to beat, on the rows that it is trained, selected and scored on."""
