package gate

import (
	"math/rand/v2"
	"net/http"
	"strconv"
)

// refuse sends the client an overload response with a time after which to retry. That time is
// random, so that clients that were refused together do not retry together.
func (g *Gate) refuse(w http.ResponseWriter, v *visit) {
	if v.grpc {
		w.Header().Set("Grpc-Retry-Pushback-Ms", strconv.Itoa(500+rand.IntN(1000)))
		trailersOnly(w, "8", "overloaded: the gate of "+header(g.config.Workload)+" refused the call before the service saw it")
		return
	}
	w.Header().Set("Retry-After", strconv.Itoa(1+rand.IntN(3)))
	plain(w, http.StatusServiceUnavailable, "overloaded: the request was refused before the service saw it, try again later")
}

// header removes from a name the characters that a gRPC message may not have.
func header(name string) string {
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		if c := name[i]; c >= ' ' && c <= '~' {
			out = append(out, c)
		}
	}
	return string(out)
}
