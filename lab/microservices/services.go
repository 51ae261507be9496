package microservices

import "slices"

// Count is the number of services.
const Count = 19

// Names are the services in order of name, as the columns of the logs.
func Names() []string {
	out := make([]string, Count)
	for i, s := range services() {
		out[i] = s.Name
	}
	return out
}

// Service is one node of the network.
type Service struct {
	Name string
	// Work is the CPU time of one visit, in milliseconds, fitted; see doc.go.
	Work float64
	// Aside tells that no request waits for it.
	Aside bool
}

// Class is one kind of request.
type Class struct {
	Name string
	// Share of all requests, in [0, 1].
	Share float64
	// Visits are how often a request calls each service, in the order of Names;
	// one after the other, so sojourn times add up.
	Visits [Count]float64
}

// Shares of the client's mixed workload (DeathStarBench, hotelReservation,
// wrk2 script mixed-workload_type_1), and how often a cache does not know.
const (
	shareSearch, shareRecommend, shareUser, shareReserve = 0.6, 0.39, 0.005, 0.005

	missed  = 0.2  // caches in front of a database
	startup = 0.01 // databases that are read when a service starts
)

// classes is the call graph: what each kind of request visits.
func classes() []Class {
	calls := []struct {
		name   string
		share  float64
		visits map[string]float64
	}{
		{"search", shareSearch, map[string]float64{"frontend": 1, "search": 1, "geo": 1, "mongodb-geo": startup,
			"rate": 1, "memcached-rate": 1, "mongodb-rate": missed,
			"reservation": 1, "memcached-reserve": 1, "mongodb-reservation": missed,
			"profile": 1, "memcached-profile": 1, "mongodb-profile": missed}},
		{"recommend", shareRecommend, map[string]float64{"frontend": 1, "recommendation": 1, "mongodb-recommendation": startup,
			"profile": 1, "memcached-profile": 1, "mongodb-profile": missed}},
		{"user", shareUser, map[string]float64{"frontend": 1, "user": 1, "mongodb-user": startup}},
		{"reserve", shareReserve, map[string]float64{"frontend": 1, "user": 1, "mongodb-user": startup,
			"reservation": 1, "memcached-reserve": 1, "mongodb-reservation": 1}},
	}
	names := Names()
	out := make([]Class, len(calls))
	for c, call := range calls {
		out[c] = Class{Name: call.name, Share: call.share}
		// Every request is traced and every connection resolved.
		call.visits["jaeger"], call.visits["consul"] = 1, 1
		for name, v := range call.visits {
			i, _ := slices.BinarySearch(names, name)
			out[c].Visits[i] = v
		}
	}
	return out
}
