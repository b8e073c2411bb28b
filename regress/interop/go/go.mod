module scenarios

go 1.25.0
