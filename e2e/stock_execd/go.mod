module stock_execd

go 1.19
