package config

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// validator checks a decoded configuration, with the positions that the
// decoder kept.
type validator struct {
	*decoder
	config   *Config
	from     sources
	warnings Errors
	broken   map[position]bool // where decoding failed
}

// objectives are the policies of the planner.
func objectives() []string {
	return []string{"njc", "egalitarian", "social", "nash", "resource-fair", "drf", EndToEnd}
}

// fail reports a mistake, unless the value could not even be read.
func (v *validator) fail(path, message, hint string) {
	if at := v.where(path); !v.broken[at] {
		v.report(at, message, hint)
	}
}

// lost reports whether one of the paths is in the file, but could not be read because its key or
// its value is a mistake. That mistake is reported; others that follow from it are not.
func (v *validator) lost(paths ...string) bool {
	for _, path := range paths {
		at, there := v.at[path]
		key, named := v.keyAt[path]
		if v.meant[path] || there && v.broken[at] || named && v.broken[key] {
			return true
		}
	}
	return false
}

func (v *validator) warn(path, message, hint string) {
	at := v.where(path)
	v.warnings = append(v.warnings, &Error{File: v.file, Line: at.line, Col: at.col, Message: message, Hint: hint})
}

// run reports every mistake and fills the defaults.
func (v *validator) run() {
	v.broken = map[position]bool{}
	for _, e := range v.errs {
		v.broken[position{e.Line, e.Col}] = true
	}
	v.declared()
	v.config.Pool.check(v)
	v.rhythm()
	if v.config.Guard.Off {
		v.warn("guard.off", "the guard is off", "only to reproduce a paper: remove the key")
	}
	if v.has("analyzer.report_interval") {
		v.between("analyzer.report_interval", v.config.Analyzer.ReportInterval, 100*time.Millisecond, v.config.Round)
	}
	v.config.Storage.check(v)
	v.config.NATS.check(v)
	v.listeners()
	v.config.Sockets.check(v)
	v.config.Measure.check(v)
	v.config.Alertmanager.check(v)
	v.config.Prometheus.check(v)
	v.config.Exporters.check(v)
	v.config.Beside.Jobs.check(v)
	v.config.Fast.check(v)
	v.config.Beside.Tasks.check(v)
	v.config.Beside.Manager.check(v)
	v.config.Kubernetes.check(v)
	v.workloads()
	v.planning()
	v.application()
	v.groups()
	if len(v.errs) == 0 {
		v.config.fill()
		v.sums()
	}
}

func (p *Pool) check(v *validator) {
	v.name("pool.name", "pool name", p.Name)
	if v.has("pool.cpu") && v.has("pool.workers") {
		v.fail("pool.workers", "the pool has both cpu and workers", "a pool shares one resource: remove one of them")
		return
	}
	v.config.Pool.checkFurther(v)
	if r := trimtab.ResourceOf(p.Resource()); r.Step == 1 && (p.Capacity() != math.Trunc(p.Capacity()) || p.Unit != math.Trunc(p.Unit)) {
		v.fail("pool."+r.Name, r.Unit+" are counted in whole numbers", fmt.Sprintf("write %s: 8 and leave unit out", r.Name))
	}
	if p.Unit > 0 && p.Capacity() > 0 {
		switch n := p.Capacity() / p.Unit; {
		case n < 1:
			v.fail("pool.unit", fmt.Sprintf("unit %v is larger than the capacity %v", p.Unit, p.Capacity()), "leave unit out")
		case n > 100_000:
			v.fail("pool.unit", fmt.Sprintf("unit %v cuts the capacity into %.0f pieces, limit 100000", p.Unit, n), "leave unit out")
		}
	}
	if p.Step > 0 && p.Unit > p.Step {
		v.fail("pool.step", fmt.Sprintf("step %v is smaller than the unit %v", p.Step, p.Unit), "leave step out, or write at least one unit")
	}
}

func (v *validator) rhythm() {
	c := v.config
	if _, _, own := c.Own(); !own && !slices.Contains(objectives(), c.Objective) {
		v.fail("objective", fmt.Sprintf("unknown objective %q", clip(c.Objective)), suggest(c.Objective, append(objectives(), "sum(u)", "min(u)")))
	}
	if !v.has("lease") {
		return
	}
	switch {
	case c.Lease < 10*time.Second:
		v.fail("lease", fmt.Sprintf("lease %s is shorter than 10s", short(c.Lease)), "a shorter lease would end whenever the planner pauses for a moment: remove the key for three rounds, at least 1m")
	case c.Lease < c.Round:
		v.fail("lease", fmt.Sprintf("lease %s is shorter than the round %s", short(c.Lease), short(c.Round)), fmt.Sprintf("it would end before it is renewed: write at least %s", short(3*c.Round)))
	case c.Lease > 24*time.Hour:
		v.fail("lease", fmt.Sprintf("lease %s is longer than 24h", short(c.Lease)), "limits stay that long after the planner dies: remove the key for three rounds, at least 1m")
	case c.Lease < 2*c.Round:
		v.warn("lease", fmt.Sprintf("lease %s ends when one renewal is late", short(c.Lease)), fmt.Sprintf("three rounds are %s", short(3*c.Round)))
	}
}

func (s *Storage) check(v *validator) {
	if s.Path == "" || strings.ContainsRune(s.Path, 0) {
		v.fail("storage.path", "storage.path is empty", "write a directory, such as /var/lib/trimtab")
	}
	v.config.Actuator.check(v)
}

func (n *NATS) check(v *validator) {
	if n.URL != "" {
		for one := range strings.SplitSeq(n.URL, ",") {
			v.url("nats.url", strings.TrimSpace(one), []string{"nats", "tls", "ws", "wss"})
		}
		if n.Listen != "" {
			v.fail("nats.listen", "listen is for the embedded server, and url selects an external one", "remove listen or url")
		}
	} else {
		n.checkNeedsURL(v)
	}
	if n.Leaf != "" {
		for one := range strings.SplitSeq(n.Leaf, ",") {
			v.url("nats.leaf", strings.TrimSpace(one), []string{"tls"})
		}
		if n.TLS.CertFile == "" {
			v.fail("nats.leaf", "a leaf node proves itself by a certificate, and there is none", "add tls, or remove leaf")
		}
	}
	if n.Listen != "" {
		v.listen("nats.listen", n.Listen)
	}
	if n.TokenFile != "" && n.Token != "" {
		v.fail("nats.token", "both token and token_file are given", "keep token_file")
	} else if n.Token != "" {
		v.inlineSecret("nats.token", "token_file")
	}
	if n.CredentialsFile != "" && (n.TokenFile != "" || n.Token != "") {
		v.fail("nats.credentials_file", "both credentials_file and a token are given", "keep the one that the server asks for")
	}
	n.TLS.check(v, "nats.tls", false)
	if n.Replicas != 0 {
		v.count("nats.replicas", n.Replicas, 1, 5)
	}
}

// checkNeedsURL refuses what the embedded server, open to this host only, has not.
func (n *NATS) checkNeedsURL(v *validator) {
	if v.lost("nats.url") {
		return
	}
	for _, k := range []struct {
		key   string
		given bool
	}{
		{"credentials_file", n.CredentialsFile != ""}, {"token_file", n.TokenFile != ""}, {"token", n.Token != ""}, {"tls", n.TLS != TLS{}}, {"leaf", n.Leaf != ""}, {"replicas", n.Replicas > 1},
	} {
		if k.given {
			v.fail("nats."+k.key, k.key+" applies to an external server, and url names none", "add url, or remove "+k.key)
		}
	}
}

func (v *validator) listeners() {
	c := v.config
	v.listen("web.listen_address", c.Web.ListenAddress)
	taken := map[string]string{}
	if c.Web.ListenAddress != "" && port(c.Web.ListenAddress) != "0" {
		taken[c.Web.ListenAddress] = "web.listen_address"
	}
	for _, l := range []struct{ path, address string }{
		{"otlp.grpc", c.OTLP.GRPC}, {"otlp.http", c.OTLP.HTTP}, {"jaeger.grpc", c.Jaeger.GRPC}, {"nats.listen", c.NATS.Listen}, {"exporters.keda.listen_address", c.Exporters.KEDA.ListenAddress},
	} {
		elsewhere := l.path == "nats.listen" || l.path == "exporters.keda.listen_address" // is where they are checked
		if l.address == "off" || elsewhere && l.address == "" {
			continue
		}
		if !elsewhere {
			v.listen(l.path, l.address)
		}
		if other, twice := taken[l.address]; twice && !v.has(l.path) {
			v.fail(other, fmt.Sprintf("address %s is also that of %s, by default", clip(l.address), l.path), "give each its own port")
		} else if twice {
			v.fail(l.path, fmt.Sprintf("address %s is also that of %s", clip(l.address), other), "give each its own port")
		} else if port(l.address) != "0" {
			taken[l.address] = l.path
		}
	}
	c.OTLP.TLS.check(v, "otlp.tls", true)
}

func (s *Sockets) check(v *validator) {
	seen := map[string]bool{}
	for i, c := range s.Components {
		at := fmt.Sprintf("sockets.components[%d]", i)
		v.name(at+".name", "component", c.Name)
		if seen[c.Name] {
			v.fail(at+".name", fmt.Sprintf("component %q is there twice", clip(c.Name)), "give each its own name")
		}
		seen[c.Name] = true
		if c.Program == "" && c.Cgroup == "" {
			v.fail(at, fmt.Sprintf("component %q names neither a program nor a cgroup", clip(c.Name)), "write program: redis-server, as ps shows it")
		}
	}
}

func (a *Alertmanager) check(v *validator) {
	if v.has("alertmanager") && a.TokenFile == "" && !v.lost("alertmanager", "alertmanager.token_file") {
		v.fail("alertmanager", "alertmanager has no token_file", "write token_file: alertmanager.token, or remove the section: no request is let in without a token")
	}
}

func (p *Prometheus) check(v *validator) {
	if strings.Contains(p.URL, "/api/v1") {
		v.fail("prometheus.url", "url names a path of the API", "write where the server is: http://host:port")
	} else if p.URL != "" {
		v.url("prometheus.url", p.URL, []string{"http", "https"})
	} else if v.has("prometheus") && !v.lost("prometheus", "prometheus.url") {
		v.fail("prometheus", "prometheus has no url", "write url: http://127.0.0.1:9090, or remove the section")
	}
	if v.has("prometheus.timeout") {
		longest := p.Interval
		longest = cmp.Or(longest, time.Hour)
		v.between("prometheus.timeout", p.Timeout, 10*time.Millisecond, longest)
	}
	if err := p.HTTP.Validate(); err != nil && v.has("prometheus") {
		v.fail(httpSetting(v, err.Error()), firstLine(err.Error()), "keep one way to authenticate, one source for each secret, and no reserved header")
	}
	if p.HTTP.TLSConfig.InsecureSkipVerify {
		v.warn("prometheus.tls_config.insecure_skip_verify", "the server's certificate is not checked", "name its authority with ca_file")
	}
	for path, file := range map[string]string{
		"basic_auth.password": "password_file", "authorization.credentials": "credentials_file",
		"oauth2.client_secret": "client_secret_file", "bearer_token": "authorization.credentials_file",
		"tls_config.key": "key_file",
	} {
		if v.has("prometheus." + path) {
			v.inlineSecret("prometheus."+path, file)
		}
	}
	for name := range v.at {
		if strings.HasSuffix(name, "_ref") && strings.HasPrefix(name, "prometheus.") {
			v.fail(name, fmt.Sprintf("%s needs a secret manager, and trimtab supports none", lastOf(name)), "use the key that ends in _file")
		}
	}
}

// httpSetting returns the path of the HTTP client's setting that message names.
func httpSetting(v *validator, message string) string {
	for _, name := range []string{"basic_auth", "authorization", "oauth2", "bearer_token", "proxy", "header"} {
		if !strings.Contains(message, name) {
			continue
		}
		for _, path := range []string{"prometheus." + name, "prometheus.http_headers", "prometheus.proxy_url"} {
			if v.has(path) && strings.Contains(path, name) {
				return path
			}
		}
	}
	return "prometheus"
}

func (v *validator) inlineSecret(path, file string) {
	v.warn(path, fmt.Sprintf("%s holds a secret in this file", lastOf(path)), "put it into a file of its own and name that with "+file)
}

// check reports a certificate without its key, or the reverse.
func (t *TLS) check(v *validator, path string, server bool) {
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		v.fail(path+".cert_file", "cert_file without key_file", "name the private key with key_file")
	case t.CertFile == "" && t.KeyFile != "":
		v.fail(path+".key_file", "key_file without cert_file", "name the certificate with cert_file")
	case server && t.CAFile != "" && t.CertFile == "":
		v.fail(path+".ca_file", "client certificates are asked for without TLS", "name cert_file and key_file too")
	}
}

// listen checks host:port, and warns off loopback.
func (v *validator) listen(path, address string) {
	if v.reachable(path, address) {
		v.warn(path, fmt.Sprintf("%s can be reached from other machines", address), "use 127.0.0.1 unless senders are elsewhere, and then TLS")
	}
}

// reachable checks host:port, and reports whether other machines reach it.
func (v *validator) reachable(path, address string) bool {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		hint := "write host:port, such as 127.0.0.1:9600 or [::1]:9600"
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			hint = fmt.Sprintf("write it without the scheme: %s", clip(u.Host))
		}
		v.fail(path, fmt.Sprintf("%q is not an address", clip(address)), hint)
		return false
	}
	if n, err := strconv.Atoi(p); err != nil || n < 0 || n > 65535 {
		v.fail(path, fmt.Sprintf("%q is not a port", clip(p)), "write a number from 1 to 65535; 0 takes any free one")
		return false
	}
	if strings.ContainsAny(host, " /@") {
		v.fail(path, fmt.Sprintf("%q is not a host", clip(host)), "write an IP address or a name, such as 127.0.0.1")
		return false
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

func port(address string) string {
	_, p, _ := net.SplitHostPort(address)
	return p
}

// url checks an absolute URL without user and password. It is not quoted in
// the message: what is wrong with it may be a secret in it.
func (v *validator) url(path, text string, schemes []string) {
	u, err := url.Parse(text)
	hint := fmt.Sprintf("write %s://host:port", schemes[0])
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		v.fail(path, lastOf(path)+" is not a URL with scheme and host", hint)
	case !slices.Contains(schemes, u.Scheme):
		v.fail(path, fmt.Sprintf("scheme %q cannot be used here", clip(u.Scheme)), "use one of: "+strings.Join(schemes, ", "))
	case u.User != nil:
		v.fail(path, lastOf(path)+" holds a user or password", "URLs are shown in logs: put the secret into a file and name that file in this section")
	case u.RawQuery != "" || u.Fragment != "":
		v.fail(path, lastOf(path)+" holds a query or fragment", hint)
	}
}

func (v *validator) between(path string, d, low, high time.Duration) {
	if d < low || d > high {
		v.fail(path, fmt.Sprintf("%s is %s, want %s to %s", lastOf(path), short(d), short(low), short(high)), "write a duration in that range, or remove the key for the default")
	}
}

func (v *validator) count(path string, n, low, high int) {
	if n < low || n > high {
		v.fail(path, fmt.Sprintf("%s is %d, want %d to %d", lastOf(path), n, low, high), "remove the key for the default")
	}
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/:", r)
}

// name checks a name that goes into subjects, metrics and paths.
func (v *validator) name(path, what, name string) {
	bad := strings.IndexFunc(name, func(r rune) bool { return !nameRune(r) })
	switch {
	case name == "":
		v.fail(path, "the "+what+" is empty", "write a name, such as checkout")
	case len(name) > 253:
		v.fail(path, fmt.Sprintf("the %s has %d characters, limit 253", what, len(name)), "shorten it")
	case bad >= 0:
		hint := "use letters, digits, '.', '_', '-', '/' and ':'"
		if plain := strings.Map(func(r rune) rune {
			if nameRune(r) {
				return r
			}
			return '-'
		}, name); nameRune(rune(name[0])) {
			hint = fmt.Sprintf("write %s: %s", plain, hint)
		}
		v.fail(path, fmt.Sprintf("the %s %q holds a character that is not allowed", what, clip(name)), hint)
	case strings.ContainsRune(".-/:", rune(name[0])):
		v.fail(path, fmt.Sprintf("the %s %q does not begin with a letter or digit", what, clip(name)), "begin with a letter or digit")
	}
}

// short prints 1h for 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// modes are those of the root package, as texts.
func modes() []string {
	return []string{string(trimtab.Off), string(trimtab.Recommend), string(trimtab.Act)}
}

// check looks at where knobs are, and the host's own limits.
func (a *Actuator) check(v *validator) {
	for _, dir := range []struct{ path, value, example string }{
		{"actuator.cgroup_root", a.CgroupRoot, "/sys/fs/cgroup"}, {"actuator.lock_dir", a.LockDir, "/run/trimtab"},
	} {
		if dir.value != "" && !filepath.IsAbs(dir.value) {
			v.fail(dir.path, fmt.Sprintf("%s %q is not absolute", lastOf(dir.path), clip(dir.value)), "write "+dir.example+", or remove the key")
		}
	}
	if v.has("actuator.max_lease") {
		lease := v.config.Lease
		lease = cmp.Or(lease, defaultLease(v.config.Round))
		v.between("actuator.max_lease", a.MaxLease, lease, 25*time.Hour)
	}
}
