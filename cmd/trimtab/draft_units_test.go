package main

import (
	"testing"
	"time"
)

func TestADraftTakesLatenciesInTheUnitOfTheirHistogram(t *testing.T) {
	for metric, want := range map[string]time.Duration{
		"http_request_duration_seconds_count": 250 * time.Second, "istio_request_duration_milliseconds_count": 250 * time.Millisecond,
		"response_latency_ms_count": 250 * time.Millisecond, "rpc_us_count": 250 * time.Microsecond, "envoy_cluster_upstream_rq_time_count": 250 * time.Millisecond,
	} {
		if got := latencyOf(metric, 250); got != want {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
}
