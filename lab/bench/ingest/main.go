package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the flags; children get them too.
type options struct {
	Role     string
	For      time.Duration
	Batch    int
	Conns    int
	Calls    int
	Rate     int
	Address  string
	SlowEach time.Duration
	MemLimit string
	Output   string
	Profile  string
	Only     string
}

func main() {
	var o options
	flag.StringVar(&o.Role, "role", "", "internal: what this process is")
	flag.DurationVar(&o.For, "for", 8*time.Second, "length of each run")
	flag.IntVar(&o.Batch, "batch", 512, "spans in a batch of the main run")
	flag.IntVar(&o.Conns, "connections", 4, "connections of the sender")
	flag.IntVar(&o.Calls, "calls", 1, "calls under way on each connection")
	flag.IntVar(&o.Rate, "rate", 0, "internal: spans that the sender sends a second at most; 0: as many as it can")
	flag.StringVar(&o.Address, "address", "", "internal: where the sender sends")
	flag.DurationVar(&o.SlowEach, "slow", 0, "internal: time that the slowed analyzer takes more for each frame")
	flag.StringVar(&o.MemLimit, "memory", "200MiB", "GOMEMLIMIT of the receivers")
	flag.StringVar(&o.Output, "o", "text", "text or json")
	flag.StringVar(&o.Profile, "cpuprofile", "", "write the receiver's CPU profile of the main run to this file")
	flag.StringVar(&o.Only, "only", "", "do just the run of this name")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "ingest:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	switch o.Role {
	case "":
		return o.bench()
	case "receiver":
		return o.receive()
	case "discard":
		return o.discard()
	case "sender":
		return o.send()
	}
	return fmt.Errorf("role %q: no such role", o.Role)
}

// trial is one run of a sender against a receiver.
type trial struct {
	name     string
	receiver string
	batch    int
	rate     int
	slow     time.Duration
	profile  bool
}

// result is what a trial showed.
type result struct {
	Name          string  `json:"name"`
	Batch         int     `json:"batch"`
	SpansPerS     float64 `json:"spans_per_s"`
	ReceiverNS    float64 `json:"receiver_cpu_ns_per_span"`
	SenderNS      float64 `json:"sender_cpu_ns_per_span"`
	Ratio         float64 `json:"receiver_over_sender_cpu"`
	PeakMiB       float64 `json:"peak_rss_mib"`
	Sent          uint64  `json:"sent"`
	Retried       uint64  `json:"retried"`
	Analysed      uint64  `json:"analysed"`
	Duplicates    uint64  `json:"duplicates"`
	Dropped       uint64  `json:"dropped"`
	Held          uint64  `json:"held_after_drain"`
	Requests      float64 `json:"requests_in_sketches"`
	SketchesLost  uint64  `json:"sketches_lost"`
	Accounted     bool    `json:"accounted"`
	P99AnswerMS   float64 `json:"answer_p99_ms"`
	ReceiverCores float64 `json:"receiver_cores"`
	// OthersCores is what other processes of this machine used meanwhile:
	// spans/s means little where it is not near 0, and then
	// SpansPerCPUSecond, of receiver and sender together, times the number of
	// cores says what a quiet machine would do.
	OthersCores       float64 `json:"others_cores"`
	SpansPerCPUSecond float64 `json:"spans_per_cpu_second"`
}

func (o *options) bench() error {
	trials := []trial{
		{name: "discard (ceiling)", receiver: "discard", batch: o.Batch},
		{name: "full path", receiver: "receiver", batch: o.Batch, profile: true},
		{name: "400,000 spans/s", receiver: "receiver", batch: o.Batch, rate: 400_000},
		{name: "slowed analyzer", receiver: "receiver", batch: o.Batch, slow: 5 * time.Millisecond},
		{name: "batches of 128", receiver: "receiver", batch: 128},
		{name: "batches of 20", receiver: "receiver", batch: 20},
		{name: "batches of 16", receiver: "receiver", batch: 16},
	}
	var results []result
	if o.Output != "json" {
		fmt.Printf("%-18s %6s %9s %9s %7s %9s %9s %7s %9s %7s %s\n", "run", "batch", "kspans/s", "per CPU s", "others", "recv ns", "send ns", "ratio", "peak MiB", "p99 ms", "sent = analysed + dropped (duplicates, retried)")
	}
	for _, t := range trials {
		if o.Only != "" && t.name != o.Only {
			continue
		}
		r, err := o.try(t)
		if err != nil {
			return fmt.Errorf("run %q: %w", t.name, err)
		}
		results = append(results, r)
		if o.Output != "json" {
			r.print(t.receiver == "receiver")
		}
	}
	if o.Output == "json" {
		return json.NewEncoder(os.Stdout).Encode(results)
	}
	return nil
}

func (r *result) print(counted bool) {
	fmt.Printf("%-18s %6d %9.0f %9.0f %7.1f %9.0f %9.0f %7.2f %9.0f %7.1f ", r.Name, r.Batch, r.SpansPerS/1000, r.SpansPerCPUSecond/1000, r.OthersCores, r.ReceiverNS, r.SenderNS, r.Ratio, r.PeakMiB, r.P99AnswerMS)
	if !counted {
		fmt.Println("-")
		return
	}
	equals := "="
	if !r.Accounted {
		equals = "≠"
	}
	fmt.Printf("%d %s %d + %d (%d, %d); %.0f requests in sketches, %d sketches lost\n", r.Sent, equals, r.Analysed, r.Dropped, r.Duplicates, r.Retried, r.Requests, r.SketchesLost)
}
