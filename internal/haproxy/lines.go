package haproxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// None is the value of a limit in the map that limits nothing.
const None = 1_000_000

// Keys of the map beside those of the classes.
const (
	// UntilKey is the Unix time in seconds up to which the bounds of classes are in force.
	UntilKey = "until"
	// RateKey is the limit of admitted requests per second, of all classes; RateUntilKey is like
	// UntilKey, for it and for those of single classes.
	RateKey      = "rate"
	RateUntilKey = "rate-until"
	// RetrySuffix makes the key of a class's retries of that of its first tries.
	RetrySuffix = "-retry"
)

// RateKeyOf returns the key of the rate of a class; "": of all requests.
func RateKeyOf(class string) string {
	if class == "" {
		return RateKey
	}
	return RateKey + "-" + class
}

// All is the class of all requests where no classes are declared.
const All = "all"

// normal is the class of requests whose header names none, if there is one of that name; else it is
// the last but one.
const normal = "normal"

// mostClasses bounds the classes of one backend.
const mostClasses = 16

// Classes are the classes of requests to one backend, and where HAProxy reads their bounds.
type Classes struct {
	Backend string
	// Map is the path of the map file, as haproxy.cfg has it.
	Map string
	// Header has the class of a request; Names are the classes, the most important first. Without
	// both, all requests are of the class [All].
	Header string
	Names  []string
}

// Validate checks what goes into haproxy.cfg and into commands.
func (c *Classes) Validate() error {
	header := strings.Trim(c.Header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
	switch {
	case !Plain(c.Backend):
		return trimtab.Invalidf("backend %.40q is no name that HAProxy allows", c.Backend)
	case !strings.HasPrefix(c.Map, "/") || len(c.Map) > 255 || strings.ContainsFunc(c.Map, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'\\#;,()*", r) }):
		return trimtab.Invalidf("map %.80q: want the absolute path of a file, without spaces, quotes and brackets", c.Map)
	case (c.Header == "") != (len(c.Names) == 0):
		return trimtab.Invalidf("classes of backend %s: want both a header and the classes in it, or neither", c.Backend)
	case header != "" || len(c.Header) > 100:
		return trimtab.Invalidf("header %.40q: want letters, digits, - and _", c.Header)
	case len(c.Names) > mostClasses:
		return trimtab.Invalidf("%d classes: at most %d may be", len(c.Names), mostClasses)
	}
	for i, name := range c.Names {
		if name == "" || len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || name == UntilKey || name == RateKey || slices.Contains(c.Names[:i], name) {
			return trimtab.Invalidf("class %.40q: want a name of small letters, digits and _ that is there once, and neither %s nor %s", name, UntilKey, RateKey)
		}
	}
	return nil
}

// names returns the classes in order of rank.
func (c *Classes) names() []string {
	if len(c.Names) == 0 {
		return []string{All}
	}
	return c.Names
}

// Ranks returns how many ranks there are: two for each class, for first tries and retries.
func (c *Classes) Ranks() int { return 2 * len(c.names()) }

// keys returns the keys of the map by rank.
func (c *Classes) keys() (keys []string) {
	for _, name := range c.names() {
		keys = append(keys, name, name+RetrySuffix)
	}
	return keys
}

// Table is the name of the backend that has the stick table.
func (c *Classes) Table() string { return "trimtab_" + c.Backend }

// usual is the class of requests whose header names none.
func (c *Classes) usual() string {
	names := c.names()
	if slices.Contains(names, normal) {
		return normal
	}
	return names[max(0, len(names)-2)]
}

// File returns the content of the map file, in which nothing is limited.
func (c *Classes) File() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s 0\n%s 0\n", UntilKey, RateUntilKey)
	keys := append(c.keys(), RateKey)
	for _, name := range c.names() {
		keys = append(keys, RateKeyOf(name))
	}
	for _, key := range keys {
		fmt.Fprintf(&b, "%s %d\n", key, None)
	}
	return b.String()
}

// Lines returns what haproxy.cfg needs: a backend that has only the table, and the rules for the
// backend of the service, which come after its own rules that deny. A request waits in the queue for
// at most wait.
func (c *Classes) Lines(wait time.Duration) string {
	look := func(key string, none int) string { return fmt.Sprintf("%s,map_str_int(%s,%d)", key, c.Map, none) }
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	fmt.Fprintf(&b, "backend %s  # only counts requests, by class\n", c.Table())
	line("stick-table type string len 48 size 64 store gpc0,gpc1,gpc1_rate(1s),http_req_cnt")
	fmt.Fprintf(&b, "\nbackend %s\n", c.Backend)
	line("option abortonclose")
	line("timeout queue %dms", wait.Milliseconds())
	line("# the class of a request")
	line("http-request set-var(txn.trimtab) str(%s)", c.usual())
	if c.Header != "" {
		known := fmt.Sprintf("req.hdr(%s),lower -m str %s", c.Header, strings.Join(c.Names, " "))
		line("http-request set-var(txn.trimtab) req.hdr(%s),lower if { %s }", c.Header, known)
	}
	line("http-request track-sc2 var(txn.trimtab) table %s", c.Table())
	line("# its bounds, which trimtab sets in the map")
	line("http-request set-var(txn.trimtab_key) var(txn.trimtab)")
	line("http-request set-var(txn.trimtab_key) var(txn.trimtab),concat(%s) if { req.hdr(x-envoy-attempt-count) -m int gt 1 } || { req.hdr(grpc-previous-rpc-attempts) -m int gt 0 }", RetrySuffix)
	line("# those that wait are served in order of rank")
	for rank, key := range c.keys() {
		line("http-request set-priority-class int(%d) if { var(txn.trimtab_key) -m str %s }", rank, key)
	}
	line("http-request set-var(txn.trimtab_until) %s", look("str("+UntilKey+")", 0))
	line("http-request set-var(txn.trimtab_most) %s", look("var(txn.trimtab_key)", None))
	line("http-request set-var(txn.trimtab_rate_until) %s", look("str("+RateUntilKey+")", 0))
	line("http-request set-var(txn.trimtab_rate) %s", look("str("+RateKey+")", None))
	line("http-request set-var(txn.trimtab_rate_key) str(%s-),concat(,txn.trimtab)", RateKey)
	line("http-request set-var(txn.trimtab_own_rate) %s", look("var(txn.trimtab_rate_key)", None))
	add := ""
	for _, name := range c.names() {
		line("http-request set-var(txn.trimtab_passed) str(%s),table_gpc1_rate(%s)%s", name, c.Table(), add)
		add = ",add(txn.trimtab_passed)"
	}
	line("acl trimtab_lease date,sub(txn.trimtab_until) lt 0")
	line("acl trimtab_full be_conn(%s),sub(txn.trimtab_most) gt 0", c.Backend)
	if n := c.names(); len(n) > 1 {
		line("# where a rate is set, its last 10%% are for the class %s", n[0])
		line("http-request set-var(txn.trimtab_passed) var(txn.trimtab_passed),mul(10),div(9) unless { var(txn.trimtab) -m str %s }", n[0])
	}
	line("acl trimtab_rate_lease date,sub(txn.trimtab_rate_until) lt 0")
	line("acl trimtab_rate var(txn.trimtab_passed),sub(txn.trimtab_rate) ge 0")
	line("acl trimtab_rate var(txn.trimtab),table_gpc1_rate(%s),sub(txn.trimtab_own_rate) ge 0", c.Table())
	line("# what is refused, and what a server answers, is counted")
	line("http-request set-var(txn.trimtab_no) int(1) if trimtab_lease trimtab_full || trimtab_rate_lease trimtab_rate")
	line("http-request set-var(txn.trimtab_grpc) bool(true) if { var(txn.trimtab_no) -m found } { req.hdr(content-type) -m beg application/grpc }")
	line("# over HTTP/2 an answer before the end of the request may be lost")
	line("http-request wait-for-body time 20ms if { var(txn.trimtab_no) -m found }")
	line(`http-request return status 200 hdr grpc-status 8 hdr grpc-message overloaded hdr grpc-retry-pushback-ms "%%[rand(1001),add(500)]" if { var(txn.trimtab_grpc) -m found }`)
	line("http-after-response set-header content-type application/grpc if { var(txn.trimtab_grpc) -m found }")
	line(`http-request return status 503 content-type text/plain string "overloaded, try again later\n" hdr Retry-After "%%[rand(3),add(1)]" if { var(txn.trimtab_no) -m found }`)
	line("http-request sc-inc-gpc1(2)")
	line("http-response sc-inc-gpc0(2)")
	return b.String()
}

// SetBounds returns the commands that set the bound of each rank, in force until a Unix time in
// seconds.
func (c *Classes) SetBounds(bounds []int, until int64) (commands []string) {
	for i, key := range c.keys() {
		commands = append(commands, c.set(key, bounds[i]))
	}
	return append(commands, c.SetUntil(until))
}

// SetUntil returns the command that renews the bounds; 0 ends them.
func (c *Classes) SetUntil(until int64) string { return c.set(UntilKey, int(until)) }

// SetRate returns the commands that set the rate of a class, "": of all requests, in force until a Unix
// time in seconds.
func (c *Classes) SetRate(class string, rate int, until int64) []string {
	return []string{c.set(RateKeyOf(class), rate), c.set(RateUntilKey, int(until))}
}

func (c *Classes) set(key string, v int) string {
	return "set map " + c.Map + " " + key + " " + strconv.Itoa(v)
}

// Show returns the command that shows the map, ShowTable the one that shows the table.
func (c *Classes) Show() string { return "show map " + c.Map }

// ShowTable returns the command that shows what is counted.
func (c *Classes) ShowTable() string { return "show table " + c.Table() }

// Bounds returns the bounds by rank in a map that was read.
func (c *Classes) Bounds(read map[string]uint64) (bounds []int) {
	for _, key := range c.keys() {
		v, ok := read[key]
		if !ok {
			v = None
		}
		bounds = append(bounds, int(v))
	}
	return bounds
}
