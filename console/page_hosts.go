package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// knobsPerPage bounds the knobs that one page draws.
const knobsPerPage = 200

// hosts is the data of hosts.html.
type hosts struct {
	Frame frame
	view.Hosts
	Query string
	// All counts all hosts by severity, without the filter; Tight is the one with the least free,
	// nil where none is measured.
	All            map[string]int
	Tight          *view.Host
	Chips          []link
	First, Last    int
	Previous, Next string
}

func (s *site) drawHosts(w http.ResponseWriter, r *http.Request) {
	f, ok := pageFilter(w, r)
	if !ok {
		return
	}
	now := time.Now()
	h := hosts{Query: f.Query, Hosts: s.view.Hosts(now, f)}
	all := h.Hosts
	if f != (view.Filter{Limit: rowsPerPage}) {
		all = s.view.Hosts(now, view.Filter{Limit: 1})
	}
	h.All = all.Counts
	if len(all.Hosts) > 0 && all.Hosts[0].Spare() <= 1 {
		h.Tight = &all.Hosts[0]
	}
	h.Frame = s.frame(r, "hosts", "Hosts", "/api/v1/hosts?"+listQuery(f, h.Offset))
	h.First, h.Last, h.Previous, h.Next = pager("/hosts", f, h.Offset, len(h.Hosts.Hosts), h.Total)
	h.Chips = chips("/hosts", f, []chip{{"in trouble", "state:bad"}, {"to watch", "state:note"}})
	s.render(w, http.StatusOK, "hosts.html", &h)
}

// hostPage is the data of host.html.
type hostPage struct {
	Frame frame
	view.HostDetail
	First, Last    int
	Previous, Next string
}

func (s *site) drawHost(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	offset, err := strconv.Atoi(query.Get("offset"))
	if err != nil {
		offset = 0
	}
	name, pool := nameOf(r), query.Get("pool")
	d, ok := s.view.Host(name, pool, knobsPerPage, offset, time.Now())
	if !ok {
		f := s.frame(r, "missing", name, "/api/v1/hosts")
		f.Subject = name
		s.render(w, http.StatusNotFound, "nohost.html", &f)
		return
	}
	h := hostPage{HostDetail: d, First: min(d.Offset+1, d.Knobs), Last: d.Offset + len(d.Listed)}
	h.Frame = s.frame(r, "host", name, address("/api/v1/hosts/", name))
	if d.Offset > 0 {
		h.Previous = "?" + with(query, "offset", strconv.Itoa(max(0, d.Offset-knobsPerPage))).Encode()
	}
	if h.Last < d.Knobs {
		h.Next = "?" + with(query, "offset", strconv.Itoa(h.Last)).Encode()
	}
	s.render(w, http.StatusOK, "host.html", &h)
}

// addressOf returns the URL of a host's page.
func addressOf(h view.Host) string {
	at := address("/hosts/", h.Name)
	if h.Pool == "" {
		return at
	}
	sep := "?"
	if strings.Contains(at, "?") {
		sep = "&"
	}
	return at + sep + url.Values{"pool": {h.Pool}}.Encode()
}

// resourceBar shows the allocated part of a host's capacity, red if more is allocated than the host
// has.
func resourceBar(r view.HostResource) bar {
	if r.Capacity == nil {
		return bar{}
	}
	b := bar{Fill: along(r.Given, *r.Capacity), Class: "fill"}
	if *r.Free < 0 {
		b.Class = "bad"
	}
	return b
}

// capacityOf formats a host's capacity of a resource.
func capacityOf(r view.HostResource) string {
	if r.Capacity == nil {
		return "capacity not measured"
	}
	return "of " + sized(*r.Capacity, r.Resource)
}

// freeOf formats the unallocated part of it.
func freeOf(r view.HostResource) string {
	if r.Free == nil {
		return view.Missing
	}
	if *r.Free < 0 {
		return "−" + sized(-*r.Free, r.Resource)
	}
	return sized(*r.Free, r.Resource)
}

// mayHave are the bounds of a knob.
func mayHave(k view.Knob) string {
	if k.Max == 0 {
		return ""
	}
	return view.AmountIn(trimtab.Units(k.Min), k.Resource) + " to " + view.AmountIn(trimtab.Units(k.Max), k.Resource)
}

// knobHas is the value of a knob.
func knobHas(k view.Knob) string {
	if a := k.InForce(); !a.Unlimited {
		return sized(a.Value, k.Resource)
	}
	return view.Amount(k.InForce())
}

// pageFilter reads the filter of a page with a list. What makes no sense as an
// offset is the beginning.
func pageFilter(w http.ResponseWriter, r *http.Request) (f view.Filter, ok bool) {
	f = view.Filter{Query: strings.TrimSpace(r.URL.Query().Get("q")), Sort: r.URL.Query().Get("sort"), Limit: rowsPerPage}
	if err := f.Validate(); err != nil {
		http.Error(w, "trimtab: "+err.Error(), http.StatusBadRequest)
		return f, false
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("offset")); err == nil {
		f.Offset = n
	}
	return f, true
}

// pager says which rows of a list a page has, and where the others are.
func pager(path string, f view.Filter, offset, shown, total int) (first, last int, previous, next string) {
	first, last = min(offset+1, total), offset+shown
	if offset > 0 {
		previous = path + "?" + listQuery(f, max(0, offset-rowsPerPage))
	}
	if last < total {
		next = path + "?" + listQuery(f, last)
	}
	return first, last, previous, next
}

// chip is a word of a filter that needs no typing.
type chip struct{ text, word string }

// chips are links that each add a word to the filter, or remove it; they keep the sort order.
func chips(path string, f view.Filter, of []chip) []link {
	words := strings.Fields(f.Query)
	to := func(words []string) string {
		f.Query = strings.Join(words, " ")
		return strings.TrimSuffix(path+"?"+listQuery(f, 0), "?")
	}
	out := []link{{"all", to(nil), len(words) == 0}}
	for _, c := range of {
		at := slices.Index(words, c.word)
		next := append(slices.Clone(words), c.word)
		if at >= 0 {
			next = slices.Delete(slices.Clone(words), at, at+1)
		}
		out = append(out, link{c.text, to(next), at >= 0})
	}
	return out
}
