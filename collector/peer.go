package collector

import (
	"bytes"
	"net/netip"
	"strconv"
	"unicode/utf8"
)

// maxPeerName is the longest name of a peer, in bytes, as for components.
const maxPeerName = 253

// Peer collects the attributes of a CLIENT or PRODUCER span that name the peer (a database, a
// broker, another service), and those of any span about the sampler. It keeps references to the
// texts, which must not change before [Peer.Name] is called. The zero value is empty.
type Peer struct {
	// an attribute was recorded
	used      bool
	texts     [peerTexts][]byte
	ranks     [peerTexts]uint8
	port      uint16
	portRank  uint8
	temporary bool
	// sampler was set
	sampled bool
	sampler sampler
	buffer  [maxPeerName]byte
}

// peerText is the meaning of an attribute for the name of a peer.
type peerText uint8

const (
	// peerService is the name that the operator gave a service.
	peerService peerText = iota
	// peerEndpoint is the service of Zipkin's remote endpoint, which exporters also make of
	// a host or database.
	peerEndpoint
	peerDatabase
	peerNamespace
	peerBroker
	peerDestination
	// peerHost is a host with or without port, peerURL a URL with one, and peerAddress a numeric
	// address.
	peerHost
	peerURL
	peerAddress
	peerRPC
	peerRPCService
	peerTexts
	// peerPort and peerTemporary are no texts.
	peerPort
	peerTemporary
	peerNothing
)

// peerKey returns the meaning of an attribute for a peer. If several attributes have one meaning,
// the one with the lowest rank counts, which is that of the newest conventions.
//
// Source: OpenTelemetry, semantic conventions 1.6 to 1.38 (general, database, messaging, HTTP,
// RPC); OpenTracing, semantic conventions 1.1.
func peerKey[T string | []byte](key T) (is peerText, rank uint8) {
	switch string(key) {
	case "service.peer.name":
		return peerService, 1
	case "peer.service":
		return peerService, 2
	case "db.system.name":
		return peerDatabase, 1
	case "db.system":
		return peerDatabase, 2
	case "db.type":
		return peerDatabase, 3
	case "db.namespace":
		return peerNamespace, 1
	case "db.name":
		return peerNamespace, 2
	case "db.instance":
		return peerNamespace, 3
	case "messaging.system":
		return peerBroker, 1
	case "messaging.destination.template":
		return peerDestination, 1
	case "messaging.destination.name":
		return peerDestination, 2
	case "messaging.destination", "message_bus.destination":
		return peerDestination, 3
	case "messaging.destination.temporary", "messaging.destination.anonymous", "messaging.temp_destination":
		return peerTemporary, 1
	case "server.address":
		return peerHost, 1
	case "net.peer.name":
		return peerHost, 2
	case "net.sock.peer.name", "peer.hostname":
		return peerHost, 3
	case "http.host":
		return peerHost, 4
	case "url.full":
		return peerURL, 1
	case "http.url":
		return peerURL, 2
	case "network.peer.address":
		return peerAddress, 1
	case "net.peer.ip":
		return peerAddress, 2
	case "net.sock.peer.addr", "peer.ipv4", "peer.ipv6":
		return peerAddress, 3
	case "peer.address":
		return peerAddress, 4
	case "server.port":
		return peerPort, 1
	case "net.peer.port":
		return peerPort, 2
	case "peer.port":
		return peerPort, 3
	case "net.sock.peer.port", "network.peer.port":
		return peerPort, 4
	case "rpc.system.name":
		return peerRPC, 1
	case "rpc.system":
		return peerRPC, 2
	case "rpc.service":
		return peerRPCService, 1
	}
	return samplerKey(key), 0
}

// NamesPeer reports whether an attribute with that key describes a peer, or the sampler.
func NamesPeer(key []byte) bool {
	is, _ := peerKey(key)
	return is != peerNothing
}

// Observe records an attribute with a text value.
func (p *Peer) Observe(key, value []byte) {
	switch is, rank := peerKey(key); {
	case is < peerTexts:
		p.set(is, rank, value)
	case is == peerPort:
		p.setPort(rank, portOf(value))
	case is == peerTemporary:
		p.temporary, p.used = string(value) == "true", true
	case is.isSampler():
		p.sample(is, value)
	}
}

// ObserveNumber records an attribute with an integer.
func (p *Peer) ObserveNumber(key []byte, n int64) {
	switch is, rank := peerKey(key); {
	case is == peerPort && n > 0 && n < 1<<16:
		p.setPort(rank, uint16(n))
	case is == peerTemporary:
		p.temporary, p.used = n == 1, true
	case is.isSampler():
		p.sample(is, strconv.AppendInt(nil, n, 10))
	}
}

// ObserveTruth records an attribute with a boolean value, which cannot be a port.
func (p *Peer) ObserveTruth(key []byte, is bool) {
	if what, _ := peerKey(key); what == peerTemporary {
		p.temporary, p.used = is, true
	}
}

// ObserveLiteral records an attribute with an integer or boolean as JSON writes it.
func (p *Peer) ObserveLiteral(key []byte, literal string) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
		p.ObserveNumber(key, n)
	} else {
		p.ObserveTruth(key, literal == "true")
	}
}

// ObserveEndpoint records an endpoint in Zipkin's form; the zero Addr means that it has no address.
func (p *Peer) ObserveEndpoint(service []byte, address netip.Addr, port uint16) {
	p.set(peerEndpoint, 1, service)
	if address.IsValid() {
		p.set(peerAddress, 1, address.AppendTo(nil))
	}
	p.setPort(5, port)
}

func (p *Peer) set(is peerText, rank uint8, value []byte) {
	if value = bytes.TrimSpace(value); len(value) > 0 && (p.ranks[is] == 0 || rank <= p.ranks[is]) {
		p.texts[is], p.ranks[is], p.used = value, rank, true
	}
}

func (p *Peer) setPort(rank uint8, port uint16) {
	if port > 0 && (p.portRank == 0 || rank <= p.portRank) {
		p.port, p.portRank, p.used = port, rank, true
	}
}

// Reset forgets everything.
func (p *Peer) Reset() {
	if !p.used {
		return
	}
	p.used, p.sampled, p.sampler = false, false, sampler{}
	p.texts, p.ranks = [peerTexts][]byte{}, [peerTexts]uint8{}
	p.port, p.portRank, p.temporary = 0, 0, false
}

// Name returns the component name of the peer, valid until the next call, nil if unknown. It is
// the first of these that is known:
//
//	the name that was given to the service     payments
//	the database, with its host or namespace   postgresql orders-db
//	the broker, with the destination           kafka orders
//	the host, with a port but 80 and 443       api.example.com:8080
//	the RPC system, with the service           aws-api S3
//
// Users and passwords in addresses are left out.
func (p *Peer) Name() []byte {
	if !p.used {
		return nil
	}
	host, port := p.host()
	namespace := p.texts[peerNamespace]
	switch {
	case p.texts[peerService] != nil:
		return p.join(p.texts[peerService], nil)
	case p.texts[peerEndpoint] != nil && !p.repeats(p.texts[peerEndpoint], host):
		return p.join(p.texts[peerEndpoint], nil)
	case p.texts[peerDatabase] != nil:
		if namespace != nil && p.texts[peerHost] == nil && p.texts[peerURL] == nil {
			host = namespace // rather than numbers
		}
		return p.join(p.texts[peerDatabase], host)
	case p.texts[peerBroker] != nil && (p.temporary || p.texts[peerDestination] == nil):
		return p.join(p.texts[peerBroker], host)
	case p.texts[peerDestination] != nil && !p.temporary:
		return p.join(p.texts[peerBroker], p.texts[peerDestination])
	case host != nil:
		return p.address(host, port)
	case p.texts[peerEndpoint] != nil:
		return p.join(p.texts[peerEndpoint], nil)
	case p.texts[peerRPCService] != nil:
		return p.join(p.texts[peerRPC], p.texts[peerRPCService])
	case namespace != nil:
		return p.join(namespace, nil)
	}
	return nil
}

// repeats reports whether an endpoint's service says nothing but an attribute does.
func (p *Peer) repeats(service, host []byte) bool {
	return bytes.EqualFold(service, host) || bytes.EqualFold(service, p.texts[peerHost]) || bytes.EqualFold(service, p.texts[peerNamespace]) ||
		bytes.EqualFold(service, p.texts[peerAddress]) || bytes.EqualFold(service, p.texts[peerDatabase])
}

// host returns the address of the peer, nil if unknown; port is 0 if unknown.
func (p *Peer) host() (host []byte, port uint16) {
	for _, is := range []peerText{peerHost, peerURL, peerAddress} {
		if host, port = authority(p.texts[is], is == peerURL); host != nil {
			break
		}
	}
	if p.port > 0 {
		port = p.port
	}
	return host, port
}

// authority splits a host or URL into host and port: user, password and path fall away.
func authority(text []byte, url bool) (host []byte, port uint16) {
	_, rest, absolute := bytes.Cut(text, []byte("://"))
	if absolute || url {
		if !absolute {
			return nil, 0
		}
		text = rest
		if end := bytes.IndexAny(text, "/?#"); end >= 0 {
			text = text[:end]
		}
	}
	text = text[bytes.LastIndexByte(text, '@')+1:]
	at := bytes.LastIndexByte(text, ':')
	if at > 0 && (bytes.IndexByte(text, ':') == at || text[at-1] == ']') {
		if port = portOf(text[at+1:]); port > 0 || at == len(text)-1 {
			text = text[:at]
		}
	}
	if text = bytes.Trim(text, "[]"); len(text) == 0 {
		return nil, 0
	}
	return text, port
}

// portOf returns the port that a text is, 0 for any other.
func portOf(text []byte) (port uint16) {
	if len(text) > 5 {
		return 0
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	if n >= 1<<16 {
		return 0
	}
	return uint16(n)
}

// address returns host:port.
func (p *Peer) address(host []byte, port uint16) []byte {
	if port == 0 || port == 80 || port == 443 {
		return p.join(host, nil)
	}
	colon := bytes.IndexByte(host, ':') >= 0
	out := p.buffer[:0]
	if colon {
		out = append(out, '[')
	}
	out = append(out, host[:min(len(host), maxPeerName-len("[]:65535"))]...)
	if colon {
		out = append(out, ']')
	}
	return valid(strconv.AppendUint(append(out, ':'), uint64(port), 10))
}

// join returns both texts with a space between; either may be missing.
func (p *Peer) join(a, b []byte) []byte {
	out := append(p.buffer[:0], a[:min(len(a), maxPeerName)]...)
	if len(a) > 0 && len(b) > 0 && len(out) < maxPeerName {
		out = append(out, ' ')
	}
	return valid(append(out, b[:min(len(b), maxPeerName-len(out))]...))
}

// valid returns a name as UTF-8.
func valid(name []byte) []byte {
	if utf8.Valid(name) {
		return name
	}
	name = bytes.ToValidUTF8(name, []byte("?"))
	return name[:min(len(name), maxPeerName)]
}
