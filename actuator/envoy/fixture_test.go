package envoy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/trimtab/trimtab/actuator"
)

const key = "circuit_breakers.shop.default.max_requests"

// imitation answers as the admin API of an Envoy does, by its documentation and the source of its
// runtime_handler.cc: a stack of layers, of which "admin" takes what is set.
type imitation struct {
	sync.Mutex
	*httptest.Server
	layers []string
	values map[string]map[string]string // by layer and key
	asked  []string
	answer http.HandlerFunc // in place of its own; nil: none
}

// imitate starts one with the layers base, admin and late.
func imitate(t *testing.T) *imitation {
	t.Helper()
	i := &imitation{layers: []string{"base", "admin", "late"}}
	i.restart()
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

// restart forgets everything that was set.
func (i *imitation) restart() {
	i.values = map[string]map[string]string{"base": {"health_check.min_interval": "5"}, "admin": {}, "late": {}}
}

// do changes it.
func (i *imitation) do(change func()) {
	i.Lock()
	defer i.Unlock()
	change()
}

// admin returns what is set through the API.
func (i *imitation) admin() (set map[string]string) {
	i.do(func() {
		set = map[string]string{}
		for k, v := range i.values["admin"] {
			set[k] = v
		}
	})
	return set
}

func (i *imitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.Lock()
	defer i.Unlock()
	i.asked = append(i.asked, r.Method+" "+r.URL.String())
	switch {
	case i.answer != nil:
		i.answer(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/runtime_modify":
		if !slices.Contains(i.layers, "admin") {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "No admin layer specified")
			return
		}
		for key, v := range r.URL.Query() {
			if i.values["admin"][key] = v[0]; v[0] == "" {
				delete(i.values["admin"], key)
			}
		}
		fmt.Fprint(w, "OK\n")
	case r.Method == http.MethodGet && r.URL.Path == "/runtime":
		entries := map[string]entry{}
		for _, layer := range i.layers {
			for key := range i.values[layer] {
				entries[key] = entry{}
			}
		}
		for key, e := range entries {
			for _, layer := range i.layers {
				v := i.values[layer][key]
				if e.Values = append(e.Values, v); v != "" {
					e.Final = v
				}
			}
			entries[key] = e
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"layers": i.layers, "entries": entries})
	default:
		http.NotFound(w, r)
	}
}

func open(t *testing.T, admin string) *Threshold {
	t.Helper()
	k, err := Open(Config{admin, key})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func reopen(undo []byte) (actuator.Knob, error) { return actuator.OrNil(Reopen(undo)) }
