package config

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

func (e *Exporters) check(v *validator) {
	e.OTLP.check(v)
	e.KEDA.check(v)
	e.Kubernetes.check(v)
	r := &e.Record
	const at = "exporters.record."
	if v.has("exporters.record") && r.Path == "" {
		v.fail("exporters.record", "record has no path", "write path: recordings, or remove the section")
	}
	if s := r.SegmentBytes; s >= 64<<10 && s <= 1<<30 && s > r.MaxBytes/4 {
		if v.has(at + "segment_bytes") {
			v.fail(at+"segment_bytes", fmt.Sprintf("segment_bytes %v is more than a quarter of max_bytes %v", r.SegmentBytes, r.MaxBytes), "leave it out")
		}
		r.SegmentBytes = r.MaxBytes / 4
	}
}

func (o *ExportOTLP) check(v *validator) {
	const at = "exporters.otlp."
	if !v.has("exporters.otlp") {
		return
	}
	switch {
	case o.Endpoint == "":
		v.fail("exporters.otlp", "otlp has no endpoint", "write endpoint: http://collector:4317, or env to take it from OTEL_EXPORTER_OTLP_ENDPOINT")
	case o.Endpoint != "env":
		v.url(at+"endpoint", o.Endpoint, []string{"http", "https"})
		o.checkLoop(v, at+"endpoint")
	}
	o.TLS.check(v, at+"tls", false)
	if o.TLS != (TLS{}) && strings.HasPrefix(o.Endpoint, "http://") {
		v.fail(at+"tls", "tls is configured, and the endpoint is http", "write https:// in the endpoint")
	}
	if v.has(at + "headers") {
		v.warn(at+"headers", "headers may hold a secret in this file", "put them into OTEL_EXPORTER_OTLP_HEADERS and leave headers out")
	}
}

func (k *ExportKEDA) check(v *validator) {
	const at = "exporters.keda"
	if !v.has(at) {
		return
	}
	k.TLS.check(v, at+".tls", true)
	if k.ListenAddress == "" {
		v.fail(at, "keda has no listen_address", "write listen_address: 127.0.0.1:9601")
		return
	}
	if v.reachable(at+".listen_address", k.ListenAddress) && k.TLS.CAFile == "" {
		v.fail(at+".listen_address", "other machines can reach it, and no certificate is asked of them", "name cert_file, key_file and ca_file in tls, or listen on 127.0.0.1")
	}
}

func (k *ExportKubernetes) check(v *validator) {
	const at = "exporters.kubernetes."
	if k.StartValues != "" {
		v.dns(at+"start_values", k.StartValues)
	}
	if k.Recommender != "" {
		v.dns(at+"recommender", k.Recommender)
	}
	if (k.StartValues != "" || k.Recommender != "" || k.Events != "") && len(v.config.Watched()) == 0 {
		v.warn("exporters.kubernetes", "no workload is one of a cluster, so nothing is told", "write knob: {kubernetes: {namespace: …, deployment: …}}, or remove the section")
	}
}

// checkLoop refuses an endpoint that plainly is one of our own receivers; names
// and the environment's endpoint are looked at when trimtab starts.
func (o *ExportOTLP) checkLoop(v *validator, path string) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Port() == "" {
		return
	}
	for _, own := range []struct{ path, address string }{
		{"otlp.grpc", v.config.OTLP.GRPC}, {"otlp.http", v.config.OTLP.HTTP}, {"jaeger.grpc", v.config.Jaeger.GRPC},
	} {
		host, p, err := net.SplitHostPort(own.address)
		if err == nil && p == u.Port() && local(u.Hostname()) && local(host) {
			v.fail(path, fmt.Sprintf("this endpoint is trimtab's own receiver %s, so trimtab would receive its own output", own.path), "name your own collector, or move "+own.path+" to another port")
			return
		}
	}
}

// local reports whether host is this machine, without a look-up.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
