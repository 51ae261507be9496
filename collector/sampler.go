package collector

import (
	"strconv"

	"github.com/trimtab/trimtab"
)

// sampler has what a span's attributes say about its sampling. A tracestate overrides it.
type sampler struct {
	// probabilistic says that param is the probability with which the trace was kept.
	probabilistic bool
	// param is a probability if probabilistic is true; for other kinds of sampler it is something
	// else, such as traces a second.
	param float64
	// probability and count are the reported values.
	probability, count float64
}

// samplerTexts are attributes that say something about the sampler, after those about a
// peer.
const (
	samplerKind = peerNothing + 1 + iota
	samplerParam
	samplerProbability
	samplerPercent
	samplerCount
)

// samplerKey returns what an attribute says about the sampler:
//
//	sampler.type, sampler.param                 Jaeger's clients and SDKs with its samplers
//	sampling.probability, sampler.probability   a probability
//	microsoft.sample_rate, _MS.sampleRate       one, in percent
//	sampler.adjusted_count, SampleRate          how many the span stands for
//
// Source: jaeger-client-go constants.go; OpenTelemetry, OTEP 170; Azure Monitor exporters;
// Honeycomb, "Sample Data".
func samplerKey[T string | []byte](key T) peerText {
	switch string(key) {
	case "sampler.type":
		return samplerKind
	case "sampler.param":
		return samplerParam
	case "sampling.probability", "sampler.probability":
		return samplerProbability
	case "microsoft.sample_rate", "_MS.sampleRate":
		return samplerPercent
	case "sampler.adjusted_count", "SampleRate":
		return samplerCount
	}
	return peerNothing
}

// isSampler reports whether an attribute says something about the sampler.
func (is peerText) isSampler() bool { return is > peerNothing }

// sample notes such an attribute.
func (p *Peer) sample(is peerText, value []byte) {
	p.used, p.sampled = true, true
	if is == samplerKind {
		p.sampler.probabilistic = string(value) == "probabilistic" || string(value) == "adaptive"
		return
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return
	}
	switch is {
	case samplerParam:
		p.sampler.param = f
	case samplerProbability:
		p.sampler.probability = f
	case samplerPercent:
		p.sampler.probability = f / 100
	case samplerCount:
		p.sampler.count = f
	}
}

// ObserveDecimal records an attribute with a number that may have a fraction.
func (p *Peer) ObserveDecimal(key []byte, value float64) {
	if is, _ := peerKey(key); is.isSampler() {
		p.sample(is, strconv.AppendFloat(nil, value, 'g', -1, 64))
	}
}

// Weigh sets how many spans s represents if attributes say so and no tracestate does.
func (p *Peer) Weigh(s *trimtab.Span) {
	if !p.sampled || s.Flags&trimtab.FlagAdjusted != 0 {
		return
	}
	count, probability := p.sampler.count, p.sampler.probability
	if probability == 0 && p.sampler.probabilistic {
		probability = p.sampler.param
	}
	if count == 0 && probability > 0 && probability <= 1 {
		count = 1 / probability
	}
	if count >= 1 && count <= maxAdjusted {
		s.Adjusted = float32(count)
		s.Flags |= trimtab.FlagAdjusted
	}
}
