package main

import (
	"os"
	"strconv"
	"time"
)

// What tests may shorten, by the environment of the sandbox. The defaults are
// what was measured with the real daemon.
var (
	pipeWriteLimit = milliseconds("STOCK_EXECD_WRITE_MS", 10_000)   // a client that takes nothing for so long is cut off
	heardLimit     = milliseconds("STOCK_EXECD_READ_MS", 60_000)    // one that says nothing for so long is let go of,
	lingerLimit    = milliseconds("STOCK_EXECD_LINGER_MS", 110_000) // its connection closed only so much later
	socketPing     = milliseconds("STOCK_EXECD_PING_MS", 30_000)
	overtakeEvery  = number("STOCK_EXECD_OVERTAKE_EVERY", 15) // of so many pipe mode runs one loses its tail; 0: none
)

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

func milliseconds(name string, otherwise int) time.Duration {
	return time.Duration(number(name, otherwise)) * time.Millisecond
}
