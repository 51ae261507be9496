// Package haproxy asks HAProxy through its runtime API (the stats socket) for its servers, its
// counters and its maps, and writes the lines of haproxy.cfg by which HAProxy itself refuses
// requests by class:
//
//	a request of class c is refused if   requests in the backend > most(c)   and   now < until
//	                            or if    admitted in the last second ≥ rate
//
// most, until and rate are entries of a map, which HAProxy reads for each request and trimtab sets.
// What is not in the map, or 1000000 there, is no limit. until is in Unix seconds: when nobody
// renews it, HAProxy refuses no more, whoever was killed.
//
// A stick table counts the requests of each class: all, admitted, and answered by a server; HAProxy
// keeps beside them how many are under way. It has no counter of requests that ended in its queue,
// so that they are computed:
//
//	not served = requests − answered − under way
//
// Source: HAProxy 2.6, doc/management.txt, section 9.3, and doc/configuration.txt, sections 4.2,
// 7.3 and 11.1. Tried with Debian's 2.6.12.
//
//	b, err := haproxy.Look(ctx, "/run/haproxy/admin.sock", "shop", "show map "+file)
package haproxy
