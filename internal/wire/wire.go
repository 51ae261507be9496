package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/quantity"
)

// Bus converts the file's settings for the bus of a process with a role.
func Bus(cfg *config.Config, role natsbus.Role, host string) (natsbus.Config, error) {
	n := cfg.NATS
	c := natsbus.Config{
		URL: n.URL, Dir: filepath.Join(cfg.Storage.Path, "bus"), Listen: n.Listen, Source: host,
		Login: natsbus.Login{Credentials: n.CredentialsFile, Token: string(n.Token)}, CA: n.TLS.CAFile, Cert: n.TLS.CertFile, Key: n.TLS.KeyFile, MaxStore: int64(cfg.Storage.Limit),
		Replicas: n.Replicas, Role: role, Host: host, Pool: cfg.Pool.Name, Lease: cfg.Lease,
	}
	if role != "" {
		c.Source += " " + string(role)
	}
	if role == natsbus.Agent {
		c.Leaf = n.Leaf
	}
	if n.TokenFile == "" {
		return c, nil
	}
	token, err := os.ReadFile(n.TokenFile)
	if err != nil {
		return c, fmt.Errorf("read nats token: %w", err)
	}
	if c.Login.Token = strings.TrimSpace(string(token)); c.Login.Token == "" {
		return c, trimtab.Invalidf("read nats token: %s is empty", n.TokenFile)
	}
	return c, nil
}

// Queries lists the queries to Prometheus.
func Queries(cfg *config.Config) []prometheus.Query {
	var out []prometheus.Query
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		for _, q := range []struct {
			quantity quantity.Quantity
			text     string
		}{{quantity.Load, w.Load}, {quantity.Performance, w.Performance}, {quantity.Allocation, w.Allocation}, {quantity.Usage, w.Usage}, {quantity.Proxy, w.Fallback.Proxy}} {
			if q.text == "" {
				continue
			}
			// Validated when the file was read.
			expr, _ := w.Match.Expand(q.text)
			query := prometheus.Query{Workload: w.Name, Quantity: q.quantity, Expr: expr}
			if requests := w.Ratio().Requests; q.quantity == quantity.Performance && requests != "" {
				query.Requests, _ = w.Match.Expand(requests)
			}
			out = append(out, query)
		}
		if t := w.Knob.Kubernetes; t != nil && w.Knob.Sized(&cfg.Pool) && cfg.Kubernetes.Memory == config.MemoryByPrometheus {
			out = append(out, podQueries(w.Name, t)...)
		}
	}
	return out
}

// podQueries are the queries for the memory of a workload's pods, by the names of cAdvisor. A limit of
// 0 is none.
func podQueries(workload string, t *config.KubernetesTarget) []prometheus.Query {
	labels := "{" + t.Matchers() + "}"
	return []prometheus.Query{
		{Workload: workload, Quantity: quantity.MemoryLimit, Expr: "container_spec_memory_limit_bytes" + labels + " > 0", Pods: true},
		{Workload: workload, Quantity: quantity.WorkingSet, Expr: "container_memory_working_set_bytes" + labels, Pods: true},
		{Workload: workload, Quantity: quantity.OOMKills, Expr: "container_oom_events_total" + labels, Pods: true, Counter: true},
	}
}
