package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"stock_execd/model"
)

// cpuTimes is the idle and the total time of the whole machine, in ticks.
func cpuTimes() (idle, total float64) {
	text, _ := os.ReadFile("/proc/stat")
	var f [8]float64
	fmt.Sscanf(string(text), "cpu %f %f %f %f %f %f %f %f", &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7])
	for _, v := range f {
		total += v
	}
	return f[3] + f[4], total
}

// sample takes one second and describes the host, not the sandbox's limits.
func sample() model.Metrics {
	idle0, total0 := cpuTimes()
	time.Sleep(time.Second)
	idle1, total1 := cpuTimes()
	m := model.Metrics{CpuCount: float64(runtime.NumCPU()), Timestamp: time.Now().UnixMilli()}
	if total1 > total0 {
		m.CpuUsedPct = 100 * (1 - (idle1-idle0)/(total1-total0))
	}
	text, _ := os.ReadFile("/proc/meminfo")
	kib := map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		var name string
		var value float64
		if n, _ := fmt.Sscanf(line, "%s %f", &name, &value); n == 2 {
			kib[name] = value
		}
	}
	m.MemTotalMib = kib["MemTotal:"] / 1024
	m.MemUsedMib = (kib["MemTotal:"] - kib["MemAvailable:"]) / 1024
	return m
}

func metricsOnce(w http.ResponseWriter, _ *http.Request) { sendJSON(w, 200, sample()) }

// metricsWatch sends a line with one LF about every two seconds until the client goes.
func metricsWatch(w http.ResponseWriter, r *http.Request) {
	startStream(w)
	for {
		line, err := json.Marshal(sample())
		if err != nil {
			return
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}
