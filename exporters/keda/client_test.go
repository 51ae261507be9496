package keda

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestMain(m *testing.M) { leak.Main(m) }

// scaler describes externalscaler.proto to google.golang.org/protobuf, which then writes
// and reads as KEDA does, and shares nothing with the code under test. A field is
// NAME:NUMBER:TYPE.
var scaler = describe(map[string]string{
	"ScaledObjectRef":       "name:1:string namespace:2:string scalerMetadata:3:repeated .externalscaler.ScaledObjectRef.ScalerMetadataEntry",
	"IsActiveResponse":      "result:1:bool",
	"GetMetricSpecResponse": "metricSpecs:1:repeated .externalscaler.MetricSpec",
	"MetricSpec":            "metricName:1:string targetSize:2:int64 targetSizeFloat:3:double",
	"GetMetricsRequest":     "scaledObjectRef:1:.externalscaler.ScaledObjectRef metricName:2:string",
	"GetMetricsResponse":    "metricValues:1:repeated .externalscaler.MetricValue",
	"MetricValue":           "metricName:1:string metricValue:2:int64 metricValueFloat:3:double",
})

func describe(messages map[string]string) protoreflect.FileDescriptor {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("externalscaler.proto"), Package: proto.String("externalscaler"), Syntax: proto.String("proto3")}
	for name, fields := range messages {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(name), Field: fieldsOf(fields)})
	}
	for _, m := range file.MessageType {
		if m.GetName() == "ScaledObjectRef" {
			m.NestedType = []*descriptorpb.DescriptorProto{{Name: proto.String("ScalerMetadataEntry"), Field: fieldsOf("key:1:string value:2:string"),
				Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}}}
		}
	}
	out, err := protodesc.NewFile(file, nil)
	if err != nil {
		panic(err)
	}
	return out
}

func fieldsOf(text string) (out []*descriptorpb.FieldDescriptorProto) {
	kinds := map[string]descriptorpb.FieldDescriptorProto_Type{"string": 9, "bool": 8, "int64": 3, "double": 1}
	label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	for _, one := range strings.Split(strings.ReplaceAll(text, "repeated ", "*"), " ") {
		part := strings.Split(one, ":")
		number, _ := new(big.Int).SetString(part[1], 10)
		f := &descriptorpb.FieldDescriptorProto{Name: proto.String(part[0]), Number: proto.Int32(int32(number.Int64())), Label: label.Enum()}
		kind, repeated := strings.CutPrefix(part[2], "*")
		if repeated {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if k, ok := kinds[kind]; ok {
			f.Type = k.Enum()
		} else {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(kind)
		}
		out = append(out, f)
	}
	return out
}

func message(name string) *dynamicpb.Message {
	return dynamicpb.NewMessage(scaler.Messages().ByName(protoreflect.Name(name)))
}

func field(m protoreflect.Message, name string) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

// object is a ScaledObject of the namespace shop with the metadata of its trigger.
type object map[string]string

func (o object) ref() *dynamicpb.Message {
	m := message("ScaledObjectRef")
	m.Set(m.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString("checkout-scaler"))
	space := "shop"
	if s, ok := o["namespace"]; ok {
		space = s
	}
	m.Set(m.Descriptor().Fields().ByName("namespace"), protoreflect.ValueOfString(space))
	all := m.Mutable(m.Descriptor().Fields().ByName("scalerMetadata")).Map()
	for k, v := range o {
		all.Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(v))
	}
	return m
}

// site is an exporter with the client that KEDA would be.
type site struct {
	*Exporter
	client *grpc.ClientConn
	at     time.Time
}

const round = 15 * time.Second

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// openSite starts an exporter at midnight with two workloads, one of which has no
// replicas, and one that is off.
func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{at: midnight}
	var err error
	s.Exporter, err = open(Config{
		Listen: "127.0.0.1:0", Pool: "default", Round: round, Metrics: metric.NewSet(),
		Workloads: []Workload{{"checkout", trimtab.Recommend, "shop", true}, {"cart", trimtab.Recommend, "shop", false}, {"old", trimtab.Off, "shop", true}},
	}, func() time.Time { return s.at })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.client = dial(t, s.Addr(), insecure.NewCredentials())
	return s
}

func dial(t *testing.T, to net.Addr, c credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	client, err := grpc.NewClient(to.String(), grpc.WithTransportCredentials(c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// plan tells of a plan, made now, that gives checkout a number of pods; 0: no action.
func (s *site) plan(sequence uint64, replicas float64, held map[string]trimtab.Held) {
	p := &trimtab.Plan{Pool: "default", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: s.at, Lease: 60, Held: held}
	if replicas != 0 {
		p.Actions = []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "default", Host: "h", Workload: "checkout", Resource: trimtab.Replicas},
			Expect: trimtab.Units(4), Set: trimtab.Units(replicas), Mode: trimtab.Recommend}}
	}
	s.Observe(p)
}

// holds tells that checkout has a number of pods.
func (s *site) holds(replicas float64, problem string) {
	s.Observe(&trimtab.Holding{Pool: "default", Host: "h", Time: s.at, Targets: []trimtab.KnobState{
		{KnobID: trimtab.KnobID{Pool: "default", Host: "h", Workload: "checkout", Resource: trimtab.Replicas}, Now: trimtab.Units(replicas), Problem: problem}}})
}

// reads is one read as KEDA does it: GetMetrics, then IsActive; the real number counts
// where it is over 0.
func (s *site) reads(t *testing.T, o object) (float64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ask, got, active := message("GetMetricsRequest"), message("GetMetricsResponse"), message("IsActiveResponse")
	ask.Set(ask.Descriptor().Fields().ByName("scaledObjectRef"), protoreflect.ValueOfMessage(o.ref()))
	ask.Set(ask.Descriptor().Fields().ByName("metricName"), protoreflect.ValueOfString(metricName))
	if err := s.client.Invoke(ctx, "/externalscaler.ExternalScaler/GetMetrics", ask, got); err != nil {
		return 0, err
	}
	if err := s.client.Invoke(ctx, "/externalscaler.ExternalScaler/IsActive", o.ref(), active); err != nil {
		return 0, err
	}
	values := field(got, "metricValues").List()
	if values.Len() != 1 || !field(active, "result").Bool() {
		t.Errorf("answers %v and %v", got, active)
		return 0, nil
	}
	v := values.Get(0).Message()
	if name := field(v, "metricName").String(); name != metricName {
		t.Errorf("metric %q", name)
	}
	if x := field(v, "metricValueFloat").Float(); x > 0 {
		return x, nil
	}
	return float64(field(v, "metricValue").Int()), nil
}

// certificate makes a certificate that is its own authority, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	what := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, what, what, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
