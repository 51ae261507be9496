package config

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/haproxy"
)

// The comments of the fields below are the documentation of the file, as in
// config.go.

// Concurrency bounds how many requests of a workload are in service at once, at the proxy before it.
type Concurrency struct {
	// Servers of a HAProxy, which queues what is more.
	HAProxy *HAProxy `yaml:"haproxy"`
	// Circuit breaker of an Envoy, which refuses what is more.
	Envoy *Envoy `yaml:"envoy"`
	// Admin address of its trimtab gate: http://HOST:PORT, or unix:/PATH.
	Gate string `yaml:"gate"`
	// Least that it, or each server, may have in service. Left out: 1.
	Min int `yaml:"min" want:"1 to 1000000" hint:"with none nothing would ever be answered"`
	// Most that it, or each server, may have in service, and what no limit counts as. Left out: 1000.
	Max int `yaml:"max" want:"1 to 1000000" hint:"the default is 1000"`
	// A fixed limit, for all servers together, which trimtab keeps set. Left out: cores × highest use at the SLO / CPU time of a request × time of a request, once all of them were measured; until then it stays as it is.
	Value int `yaml:"value" want:"1 to 1000000" hint:"remove it: trimtab then derives the limit"`
}

// HAProxy says which servers.
type HAProxy struct {
	// Its stats socket, which needs the level admin: an absolute path, or HOST:PORT.
	Socket string `yaml:"socket"`
	// Name of the backend.
	Backend string `yaml:"backend"`
	// Name of the server, or * for all of the backend, each of which then has its part. A server with minconn cannot be limited below that, nor be put back to it.
	Server string `yaml:"server"`
	// Map file of the lines that `trimtab init haproxy` prints for haproxy.cfg: an absolute path, as there. HAProxy then refuses requests by class at once, up to bounds that trimtab sets in the map. Left out: what is more only waits.
	Map string `yaml:"map"`
	// Request header that has the class of a request, with classes. Left out: all requests are of one class.
	Header string `yaml:"header"`
	// Values of the header, the most important one first.
	Classes []string `yaml:"classes"`
}

// Refuses returns the classes that HAProxy refuses by; nil if it does not.
func (h *HAProxy) Refuses() *haproxy.Classes {
	if h == nil || h.Map == "" {
		return nil
	}
	return &haproxy.Classes{Backend: h.Backend, Map: h.Map, Header: h.Header, Names: h.Classes}
}

// Envoy says which limit of which Envoy.
type Envoy struct {
	// Its admin address: http://HOST:PORT, or unix:/PATH. Its runtime needs a layer of type admin_layer.
	Admin string `yaml:"admin"`
	// Runtime key of the limit: circuit_breakers.CLUSTER.default.max_requests, or max_connections for a cluster that is to queue what is more.
	Key string `yaml:"key"`
}

// fill sets what was left out.
func (c *Concurrency) fill() {
	if c == nil {
		return
	}
	c.Min = cmp.Or(c.Min, 1)
	c.Max = cmp.Or(c.Max, max(1000, c.Min, c.Value))
}

// checkConcurrency checks what limits requests.
func (k *Knob) checkConcurrency(v *validator, where string) {
	c, at := k.Concurrency, where+"."+trimtab.Concurrency
	if c == nil || v.lost(at+".haproxy", at+".envoy", at+".gate") {
		return
	}
	var named []string
	for _, kind := range []string{"haproxy", "envoy", "gate"} {
		if v.has(at + "." + kind) {
			named = append(named, kind)
		}
	}
	switch {
	case len(named) > 1:
		v.fail(at+"."+named[1], "concurrency has both "+named[0]+" and "+named[1], "one of them limits the requests: remove the other")
	case c.HAProxy != nil:
		c.HAProxy.check(v, at+".haproxy")
		c.HAProxy.checkClasses(v, at+".haproxy")
	case c.Envoy != nil:
		c.Envoy.check(v, at+".envoy")
	case len(named) == 0:
		v.fail(at, "concurrency has neither haproxy, envoy nor gate", "write haproxy: {socket: /run/haproxy/admin.sock, backend: NAME, server: NAME}, envoy: {admin: http://HOST:PORT, key: KEY}, or gate: unix:/PATH")
	default:
		checkAdmin(v, at+".gate", "gate", c.Gate, "write the --admin address of its trimtab gate")
	}
	full := *c // what was left out is set once all is checked
	full.fill()
	switch {
	case full.Min > full.Max:
		v.fail(at+".min", fmt.Sprintf("min %d is more than max %d", full.Min, full.Max), fmt.Sprintf("swap them: min: %d, max: %d", full.Max, full.Min))
	case c.Value != 0 && c.Value < full.Min:
		v.fail(at+".value", fmt.Sprintf("value %d is less than min %d", c.Value, full.Min), "write a value between min and max")
	case c.Value > full.Max && (c.HAProxy == nil || c.HAProxy.Server != "*"):
		v.fail(at+".value", fmt.Sprintf("value %d is more than max %d", c.Value, full.Max), "write a value between min and max")
	}
}

// path names the servers to package actuator/haproxy.
func (h *HAProxy) path() string {
	if h.Server == "*" {
		return h.Backend + "/*"
	}
	return h.Backend + "/" + h.Server + "/*"
}

func (h *HAProxy) check(v *validator, at string) {
	named := func(s string) bool {
		return s != "" && len(s) <= 253 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == ""
	}
	for key, value := range map[string]string{"backend": h.Backend, "server": h.Server} {
		if !named(value) && !(key == "server" && value == "*") && !v.lost(at+"."+key) {
			v.fail(orSection(v, at, key), fmt.Sprintf("%q is no name of a %s of HAProxy", clip(value), key), "write it as in haproxy.cfg: letters, digits, -, _, . and :")
		}
	}
	if !isAddress(h.Socket) && !(filepath.IsAbs(h.Socket) && len(h.Socket) <= maxSocketPath && !strings.ContainsAny(h.Socket, "\x00\n*")) && !v.lost(at+".socket") {
		v.fail(orSection(v, at, "socket"), fmt.Sprintf("socket %q is neither an absolute path nor HOST:PORT", clip(h.Socket)), "write that of the line `stats socket PATH level admin` in haproxy.cfg")
	}
}

// checkClasses checks what HAProxy refuses by.
func (h *HAProxy) checkClasses(v *validator, at string) {
	if v.lost(at+".map", at+".header", at+".classes", at+".backend") {
		return
	}
	if h.Map == "" && (h.Header != "" || len(h.Classes) > 0) {
		v.fail(at, "classes are refused by a map, and there is none", "write map: /etc/haproxy/trimtab.map, and the lines of `trimtab init haproxy` into haproxy.cfg")
		return
	}
	if c := h.Refuses(); c != nil {
		if err := c.Validate(); err != nil {
			v.fail(at+".map", err.Error(), "write map: /etc/haproxy/trimtab.map, header: x-priority, classes: [critical, normal, low]")
		}
	}
}

// maxSocketPath is the longest path of a socket, in bytes (sockaddr_un).
const maxSocketPath = 107

// orSection returns the path of a key, or of its section if the key was left out.
func orSection(v *validator, section, key string) string {
	if v.has(section + "." + key) {
		return section + "." + key
	}
	return section
}

// isAddress reports whether a text is HOST:PORT.
func isAddress(s string) bool {
	u, err := url.Parse("tcp://" + s)
	return err == nil && u.Host == s && u.Hostname() != "" && u.Port() != "" && !strings.Contains(s, "*")
}

func (e *Envoy) check(v *validator, at string) {
	if !v.lost(at + ".admin") {
		checkAdmin(v, orSection(v, at, "admin"), "admin", e.Admin, "write the address of `admin` in Envoy's bootstrap")
	}
	if !isBreaker(e.Key) && !v.lost(at+".key") {
		v.fail(orSection(v, at, "key"), fmt.Sprintf("key %q is no limit of requests in Envoy's runtime", clip(e.Key)), "write circuit_breakers.CLUSTER.default.max_requests")
	}
}

// isBreaker reports whether a runtime key of Envoy limits what is in service, as actuator/envoy does.
func isBreaker(key string) bool {
	cluster, ok := strings.CutPrefix(key, "circuit_breakers.")
	for _, setting := range []string{".default.max_requests", ".default.max_connections", ".high.max_requests", ".high.max_connections"} {
		if name, found := strings.CutSuffix(cluster, setting); ok && found {
			return name != "" && len(name) <= 200 && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' }) < 0
		}
	}
	return false
}

// checkAdmin checks the address of an admin API, which key names.
func checkAdmin(v *validator, at, key, text, hint string) {
	file, unix := strings.CutPrefix(text, "unix:")
	host, tcp := strings.CutPrefix(strings.TrimSuffix(text, "/"), "http://")
	if unix && filepath.IsAbs(file) && len(file) <= maxSocketPath && !strings.ContainsAny(file, "\x00\n*") || tcp && isAddress(host) {
		return
	}
	v.fail(at, fmt.Sprintf("%s %q is neither http://HOST:PORT nor unix:/PATH", key, clip(text)), hint)
}
