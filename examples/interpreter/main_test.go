package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// longest is how long a test waits for what must come.
const longest = time.Minute

// rules returns what a control plane that has webhook.yaml knows of the kind, and what
// reports that it has an answer.
func rules(t *testing.T) (kinds.Rules, <-chan webhook.Call) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	data, err := os.ReadFile("webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		t.Fatal(err)
	}
	config.UID, config.Generation = "uid", 1
	to := &config.Webhooks[0].ClientConfig
	to.URL = ptr.To(server.URL + "/crawlers")
	to.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	calls := make(chan webhook.Call, 16)
	hooks := webhook.New(webhook.Options{Called: func(c webhook.Call) { calls <- c }})
	hooks.Use([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{config})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hooks.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return hooks.Rules(schema.GroupVersionKind{Group: "web.example.io", Version: "v1", Kind: "Crawler"}), calls
}

func crawler(workers, running int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "web.example.io/v1", "kind": "Crawler", "metadata": map[string]any{"namespace": "shop", "name": "news"},
		"spec": map[string]any{"workers": workers, "sites": "pages"}, "status": map[string]any{"running": running},
	}}
}

// TestWhatAControlPlaneAsks asks as the control plane does.
func TestWhatAControlPlaneAsks(t *testing.T) {
	r, calls := rules(t)
	for name, tc := range map[string]struct {
		ask  func() (any, error)
		want string // in JSON
	}{
		"replicas": {func() (any, error) { n, _, err := r.Replicas(crawler(3, 0)); return n, err }, `3`},
		"replicas in a cluster": {func() (any, error) {
			out, err := r.Revise(crawler(3, 0), 2)
			if err != nil {
				return nil, err
			}
			return out.Object["spec"], nil
		}, `{"sites":"pages","workers":2}`},
		"dependencies": {func() (any, error) { return r.Dependencies(crawler(3, 0)) }, `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"pages"}]`},
		"health":       {func() (any, error) { return r.Health(crawler(3, 3)) }, `true`},
		"no health":    {func() (any, error) { return r.Health(crawler(3, 2)) }, `false`},
		"status":       {func() (any, error) { return r.Reflect(crawler(3, 2)) }, `{"running":2}`},
		"the whole status": {func() (any, error) {
			out, err := r.Aggregate(crawler(3, 0), []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "east", Status: &runtime.RawExtension{Raw: []byte(`{"running":2}`)}},
				{ClusterName: "west", Status: &runtime.RawExtension{Raw: []byte(`{"running":1}`)}},
				{ClusterName: "north"},
			})
			return out, err
		}, `{"running":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.ask()
			if _, awaits := kinds.Awaits(err); awaits {
				select {
				case <-calls:
				case <-time.After(longest):
					t.Fatal("no answer came")
				}
				got, err = tc.ask()
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswersOnTheWire: they say neither what they are nor more than was asked.
func TestAnswersOnTheWire(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(answer))
	defer server.Close()
	for name, tc := range map[string]struct{ asked, want string }{
		"an answer":                 {`{"request":{"uid":"u","operation":"InterpretReplica","object":{"spec":{"workers":3}}}}`, `{"response":{"uid":"u","successful":true,"replicas":3}}`},
		"what it does not know":     {`{"request":{"uid":"u","operation":"Retain","object":{}}}`, `{"response":{"uid":"u","successful":false,"status":{"message":"Retain of a Crawler is nothing this program knows about","code":422}}}`},
		"an object that is none":    {`{"request":{"uid":"u","operation":"InterpretReplica","object":7}}`, `{"response":{"uid":"u","successful":false,"status":{"message":"the object is no Crawler: `},
		"a question that is none":   {`{}`, "this is no question of an interpreter"},
		"a question without an end": {`{"request":{"uid":"` + strings.Repeat("x", mostAsked), "this is no question of an interpreter"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := server.Client().Post(server.URL, "application/json", strings.NewReader(tc.asked))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(string(body)); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
