package config_test

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestExportersAreOffUnlessTheFileNamesThem(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
	c := config.Default()
	if c.Exporters.OTLP.Endpoint != "" || c.Exporters.Record.Path != "" {
		t.Errorf("on by default: %+v", c.Exporters)
	}
}

func TestExportersComeBackFromTheRedactedFileWithoutTheirSecrets(t *testing.T) {
	c := parse(t, `exporters: {otlp: {endpoint: "https://c:4317", headers: {authorization: hunter2}}, record: {path: rec, max_bytes: 2MiB}}`)
	if c.Exporters.Record.SegmentBytes != 512<<10 {
		t.Errorf("segments of %v, want a quarter of the whole", c.Exporters.Record.SegmentBytes)
	}
	text := string(c.Redacted())
	if strings.Contains(text, "hunter2") || string(c.Exporters.OTLP.Headers["authorization"]) != "hunter2" {
		t.Errorf("redacted: %s", text)
	}
	if again := parse(t, text); again.Exporters.Record != c.Exporters.Record || again.Exporters.OTLP.Endpoint != c.Exporters.OTLP.Endpoint {
		t.Errorf("%+v came back as %+v", c.Exporters, again.Exporters)
	}
}

func TestAListenerForKEDAOffLoopbackNeedsCertificatesOfBothSides(t *testing.T) {
	for text, want := range map[string]string{
		`exporters: {keda: {listen_address: "127.0.0.1:9601"}}`:                                             "",
		`exporters: {keda: {listen_address: "0.0.0.0:9601", tls: {cert_file: c, key_file: k, ca_file: a}}}`: "",
		`exporters: {keda: {listen_address: "0.0.0.0:9601"}}`:                                               "no certificate is asked of them",
		`exporters: {keda: {listen_address: ":9601", tls: {cert_file: c, key_file: k}}}`:                    "no certificate is asked of them",
		`exporters: {keda: {listen_address: "127.0.0.1:4317"}}`:                                             "otlp.grpc",
		`exporters: {keda: {listen_address: "nowhere"}}`:                                                    "not an address",
		`exporters: {keda: {}}`: "no listen_address",
	} {
		_, err := config.Parse("trimtab.yaml", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
