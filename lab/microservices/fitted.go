package microservices

// services are fitted to the four recorded runs of hotelres_log_*.csv, see
// doc.go, and frozen; beside each, the CPUs that it needs at OfferedRate and
// speed 1. What is visited seldom hardly matters, so its work is the least
// certain.
func services() []Service {
	return []Service{
		{"consul", 0.684, true},                   // 2.03
		{"frontend", 1.405, false},                // 4.17
		{"geo", 4.622, false},                     // 8.25
		{"jaeger", 0.661, true},                   // 1.96
		{"memcached-profile", 0.785, false},       // 2.31
		{"memcached-rate", 1.445, false},          // 2.58
		{"memcached-reserve", 1.337, false},       // 2.41
		{"mongodb-geo", 25.040, false},            // 0.45
		{"mongodb-profile", 4.578, false},         // 2.70
		{"mongodb-rate", 24.590, false},           // 8.77
		{"mongodb-recommendation", 31.934, false}, // 0.37
		{"mongodb-reservation", 6.624, false},     // 2.46
		{"mongodb-user", 25.826, false},           // 0.01
		{"profile", 0.975, false},                 // 2.87
		{"rate", 1.449, false},                    // 2.59
		{"recommendation", 2.210, false},          // 2.57
		{"reservation", 1.337, false},             // 2.41
		{"search", 1.682, false},                  // 3.00
		{"user", 7.925, false},                    // 0.24
	}
}
