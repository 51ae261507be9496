package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trimtab/trimtab"
)

// This file reads how much memory containers use: from the resource metrics API, which tells the
// working set alone, or from the kubelet of each node.
//
// Source: metrics.k8s.io/v1beta1 PodMetrics; k8s.io/kubelet/pkg/apis/stats/v1alpha1 Summary.

// Usage is a reading of a container's memory, in bytes. What the source does not tell is nil.
type Usage struct {
	// Time is when the node read it.
	Time                                    time.Time
	WorkingSet, Usage, Anonymous, Swap, PSI *float64
}

// UsageKey names a container. Its pod's uid is "" where the source does not tell it.
type UsageKey struct{ Namespace, Pod, UID, Container string }

// maxUsage bounds an answer with the usage of many containers.
const maxUsage = 64 << 20

// MetricsUsage returns the last readings of the containers of a namespace from the resource metrics
// API, into which metrics-server puts one each 15 s. The error is os.ErrNotExist if the cluster has no
// such API.
func (c *Client) MetricsUsage(ctx context.Context, namespace string, take func(UsageKey, Usage)) error {
	var list struct {
		Items []struct {
			Meta       `json:"metadata"`
			Timestamp  time.Time `json:"timestamp"`
			Containers []struct {
				Name  string `json:"name"`
				Usage List   `json:"usage"`
			} `json:"containers"`
		} `json:"items"`
	}
	if err := c.rawUpTo(ctx, maxUsage, "/apis/metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods", &list); err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		for _, of := range p.Containers {
			if v, ok := of.Usage[trimtab.Memory]; ok && v >= 0 {
				bytes := float64(v)
				take(UsageKey{namespace, p.Name, "", of.Name}, Usage{Time: p.Timestamp, WorkingSet: &bytes})
			}
		}
	}
	return nil
}

// Kubelets asks the kubelets of a cluster, with the credentials that the API server is asked with.
// A kubelet must prove its name by a certificate before it sees them.
type Kubelets struct {
	config *rest.Config
	roots  *x509.CertPool

	mu  sync.Mutex
	all map[string]*http.Client
}

// OpenKubelets returns the kubelets of the cluster of c. caFile has the authorities that sign the
// certificates of kubelets; "": those of the API server.
func (c *Client) OpenKubelets(caFile string) (*Kubelets, error) {
	config, err := restConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("find cluster: %w", err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read certificates of the cluster: %w", err)
	}
	pem := config.CAData
	if caFile != "" {
		if pem, err = os.ReadFile(caFile); err != nil {
			return nil, fmt.Errorf("read authorities of kubelets: %w", err)
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, trimtab.Invalidf("authorities of kubelets: no certificate in %q: name a file in kubernetes.kubelet_ca_file", caFile)
	}
	return &Kubelets{config: config, roots: roots, all: map[string]*http.Client{}}, nil
}

// clientOf returns a client that speaks with the kubelet of one name alone.
func (k *Kubelets) clientOf(name string) (*http.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.all[name]; c != nil {
		return c, nil
	}
	own := tls.Config{RootCAs: k.roots, ServerName: name, MinVersion: tls.VersionTLS12}
	if len(k.config.CertData) > 0 {
		pair, err := tls.X509KeyPair(k.config.CertData, k.config.KeyData)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		own.Certificates = []tls.Certificate{pair}
	}
	bare := *k.config
	bare.TLSClientConfig = rest.TLSClientConfig{}
	trip, err := rest.HTTPWrappersForConfig(&bare, &http.Transport{TLSClientConfig: &own, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 1})
	if err != nil {
		return nil, err
	}
	c := &http.Client{Transport: trip, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	k.all[name] = c
	return c, nil
}

// Close releases idle connections.
func (k *Kubelets) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.all {
		c.CloseIdleConnections()
	}
}

// summary is the part of a kubelet's answer that is read.
type summary struct {
	Pods []struct {
		Ref struct {
			Name, Namespace, UID string
		} `json:"podRef"`
		Containers []struct {
			Name   string `json:"name"`
			Memory *struct {
				Time       time.Time `json:"time"`
				Usage      *float64  `json:"usageBytes"`
				WorkingSet *float64  `json:"workingSetBytes"`
				RSS        *float64  `json:"rssBytes"`
				PSI        *struct {
					Some struct {
						Avg10 *float64 `json:"avg10"`
					} `json:"some"`
				} `json:"psi"`
			} `json:"memory"`
			Swap *struct {
				Usage *float64 `json:"swapUsageBytes"`
			} `json:"swap"`
		} `json:"containers"`
	} `json:"pods"`
}

// NodeUsage returns the last readings of all containers of a node from its kubelet. The kubelet makes
// one each 10 s or so. It is not asked for file systems, which take it longest, and without which it
// refuses the rest.
func (w *Cluster) NodeUsage(ctx context.Context, k *Kubelets, node string, take func(UsageKey, Usage)) error {
	if err := w.fresh(nodes()); err != nil {
		return err
	}
	n := w.tables.nodes.get("", node)
	if n == nil {
		return fmt.Errorf("find node %s: %w", node, os.ErrNotExist)
	}
	address, name := n.kubelet()
	if address == "" {
		return fmt.Errorf("ask kubelet of %s: the node has no address: %w", node, trimtab.ErrUnsupported)
	}
	client, err := k.clientOf(name)
	if err != nil {
		return fmt.Errorf("ask kubelet of %s: %w", node, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/stats/summary?only_cpu_and_memory=true", nil)
	if err != nil {
		return fmt.Errorf("ask kubelet of %s: %w", node, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask kubelet of %s: %w", node, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden, http.StatusUnauthorized:
		return fmt.Errorf("ask kubelet of %s: %s: it needs the right to get nodes/stats: %w", node, answer.Status, trimtab.ErrRefused)
	default:
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // what can be read of it
		return fmt.Errorf("ask kubelet of %s: %s: %q: %w", node, answer.Status, why, trimtab.ErrStale)
	}
	return readSummary(io.LimitReader(answer.Body, maxUsage), take)
}

// kubelet returns where a node's kubelet listens, and the name in its certificate.
func (n *Node) kubelet() (address, name string) {
	host, name := "", n.Name
	for _, a := range n.Status.Addresses {
		switch a.Type {
		case "InternalIP":
			if host == "" {
				host = a.Address
			}
		case "Hostname":
			name = strings.ToLower(a.Address)
		}
	}
	port := n.Status.DaemonEndpoints.Kubelet.Port
	if host == "" || port <= 0 {
		return "", name
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), name
}

// readSummary reads a kubelet's answer.
func readSummary(in io.Reader, take func(UsageKey, Usage)) error {
	var s summary
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("read summary of a kubelet: %w", errors.Join(err, trimtab.ErrInvalid))
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		for _, c := range p.Containers {
			if c.Memory == nil || c.Memory.Time.IsZero() {
				continue
			}
			u := Usage{Time: c.Memory.Time, WorkingSet: used(c.Memory.WorkingSet), Usage: used(c.Memory.Usage), Anonymous: used(c.Memory.RSS)}
			if c.Swap != nil {
				u.Swap = sane(c.Swap.Usage)
			}
			if c.Memory.PSI != nil && c.Memory.PSI.Some.Avg10 != nil && *c.Memory.PSI.Some.Avg10 <= 100 {
				if u.PSI = sane(c.Memory.PSI.Some.Avg10); u.PSI != nil {
					*u.PSI /= 100
				}
			}
			take(UsageKey{p.Ref.Namespace, p.Ref.Name, p.Ref.UID, c.Name}, u)
		}
	}
	return nil
}

// used drops a value that the kubelet does not know, for which it writes 0: no container runs without memory.
func used(v *float64) *float64 {
	if v = sane(v); v == nil || *v == 0 {
		return nil
	}
	return v
}

// sane drops a value that no amount of memory can be.
func sane(v *float64) *float64 {
	if v == nil || !(*v >= 0 && *v < 1<<62) {
		return nil
	}
	return v
}
