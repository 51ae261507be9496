package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/memlimit"
)

//go:embed Service.java
var javaSource []byte

// child serves the Go service: ADDRESS SOCKET BLOCKS. Its cache has blocks of 64 KiB.
func child(args []string) error {
	blocks, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("read number of blocks: %w", err)
	}
	type block = [64 << 10]byte
	cache := make(chan []*block, 1) // whoever has received it may use it
	all := make([]*block, blocks)
	for i := range all {
		all[i] = new(block)
	}
	cache <- all
	slots := make(chan struct{}, 8) // requests in service, as many as the JVM has threads
	go func() {
		fmt.Fprintln(os.Stderr, memlimit.ListenAndServe(args[1]))
		os.Exit(1)
	}()
	http.HandleFunc("/gc", func(w http.ResponseWriter, _ *http.Request) {
		v := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/scavenge/total:cpu-seconds"}}
		metrics.Read(v)
		_ = json.NewEncoder(w).Encode(v[0].Value.Float64() + v[1].Value.Float64())
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		slots <- struct{}{}
		defer func() { <-slots }()
		c := <-cache
		from := c[rand.IntN(len(c))]
		if rand.IntN(4) == 0 {
			c[rand.IntN(len(c))] = new(block)
		}
		cache <- c
		work, sum := make([]byte, 4*len(from)), 0
		for i := range 4 {
			copy(work[i*len(from):], from[:])
		}
		for _, b := range work {
			sum += int(b)
		}
		fmt.Fprintln(w, "ok", sum)
	})
	return http.ListenAndServe(args[0], nil) //nolint:gosec // a bench on the loopback
}

// service is one of the services, as it is started.
type service struct {
	name string
	// limit is the untouched limit of its group, in MiB.
	limit float64
	// args starts it at an address with its files in a directory.
	args func(address, dir string) ([]string, error)
	// collector returns the CPU time of its collector so far, in seconds.
	collector func(address string, pid int) (float64, error)
}

func services(o *options) []service {
	return []service{{"jvm", 512, func(address, dir string) ([]string, error) {
		file := filepath.Join(dir, "Service.java")
		if err := os.WriteFile(file, javaSource, 0o600); err != nil {
			return nil, fmt.Errorf("write service: %w", err)
		}
		if out, err := exec.Command("javac", "-d", dir, file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile service: %w\n%s", err, out)
		}
		_, port, _ := strings.Cut(address, ":")
		args := []string{"java", "-Xms64m", "-Xmx420m", "-Dsun.net.httpserver.nodelay=true"}
		args = append(args, strings.Fields(o.Collector)...)
		return append(args, "-cp", dir, "Service", port, "800"), nil
	}, func(_ string, pid int) (float64, error) { return collectorThreads(pid) }},
		{"go", 400, func(address, dir string) ([]string, error) {
			own, err := os.Executable()
			return []string{"/usr/bin/env", "GOGC=550", own, childWord, address, filepath.Join(dir, "memlimit"), "800"}, err
		}, func(address string, _ int) (v float64, err error) {
			answer, err := http.Get("http://" + address + "/gc")
			if err != nil {
				return 0, fmt.Errorf("ask for the time of the collector: %w", err)
			}
			defer answer.Body.Close()
			return v, json.NewDecoder(answer.Body).Decode(&v)
		}}}
}

// collectorThreads adds up the CPU time of the threads of HotSpot's collectors.
func collectorThreads(pid int) (seconds float64, err error) {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range all {
		name, bad := os.ReadFile(filepath.Join(dir, "comm"))
		if bad != nil {
			continue // the thread ended
		}
		for _, begin := range []string{"GC Thread", "Shenandoah", "G1 ", "ZWorker", "ZDriver", "ZDirector", "ZStat", "ZUncommitter", "XWorker"} {
			if strings.HasPrefix(string(name), begin) {
				// The first number of schedstat is the time on a CPU, in nanoseconds.
				seconds += rig.Number(filepath.Join(dir, "schedstat"), "") / 1e9
			}
		}
	}
	return seconds, err
}
