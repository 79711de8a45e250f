package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

const crawlers = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crawlers.web.example.io}
spec:
  group: web.example.io
  scope: Namespaced
  names: {kind: Crawler, plural: crawlers, singular: crawler}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: crawlers}
spec:
  resourceSelectors: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: crawlers.web.example.io}]
  placement: {clusterAffinity: {clusterNames: [east, edge, west]}}
`

const crawling = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: robots, namespace: %[1]s}
data: {robots.txt: "User-agent: *"}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: crawlers, namespace: %[1]s}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: web.example.io/v1, kind: Crawler}]
  placement:
    clusterAffinity: {clusterNames: [east, edge, west]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
---
apiVersion: web.example.io/v1
kind: Crawler
metadata: {name: news, namespace: %[1]s}
spec: {spiders: 3, robots: robots, window: day}
`

const hook = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: {name: crawlers}
webhooks:
  - name: crawlers.web.example.io
    rules: [{operations: ["*"], apiGroups: [web.example.io], apiVersions: [v1], kinds: [Crawler]}]
    clientConfig: {url: %q, caBundle: %s}
    timeoutSeconds: 1
    interpreterContextVersions: [v1alpha1]
`

// TestWebhookInterpreter has a kind interpreted by a server of its own: divided,
// revised, retained, judged and summed up. When that hangs, its objects wait, and
// nothing else does; when it is back, they go on.
func TestWebhookInterpreter(t *testing.T) {
	server := newCrawlerServer(t)
	namespace := fleet.NameOf(t)
	t.Cleanup(func() { gone(t) }) // or a later run would find it on its way out
	the.Apply(t, crawlers)
	eventually(t, time.Minute, "the control plane serves the kind", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("web.example.io/v1")
		list.SetKind("CrawlerList")
		return the.hub.List(ctx, list)
	})
	the.Apply(t, fmt.Sprintf(hook, server.URL+"/interpret", server.bundle()))
	the.Apply(t, fmt.Sprintf(crawling, namespace))

	crawler := object("web.example.io/v1", "Crawler", namespace, "news")
	eventually(t, 90*time.Second, "the spiders are divided", spiders(crawler, 1))
	eventually(t, 30*time.Second, "what they read went along", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "robots"}, &corev1.ConfigMap{})
		}))
	for _, name := range memberNames {
		work(t, name, crawler, map[string]any{"crawling": int64(1)})
	}
	eventually(t, 30*time.Second, "the template sums its clusters up", func(ctx context.Context) error {
		return holds(ctx, the.hub, crawler, int64(3), "status", "crawling")
	})
	eventually(t, 30*time.Second, "every cluster is healthy", healthIn(namespace, workv1alpha2.ResourceHealthy))
	t.Run("the member keeps what is its own", func(t *testing.T) { keepsWindow(t, crawler) })
	t.Run("a server that hangs", func(t *testing.T) { hangs(t, server, namespace, crawler) })
}

// gone waits until no cluster serves the kind any more.
func gone(t *testing.T) {
	t.Helper()
	check := func(ctx context.Context) error {
		definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "crawlers.web.example.io")
		all := absent(ctx, the.hub, definition, "", definition.GetName())
		for _, member := range the.members {
			all = errors.Join(all, absent(ctx, member, definition, "", definition.GetName()))
		}
		return all
	}
	if err := fleet.Until(context.WithoutCancel(t.Context()), 100*time.Millisecond, slack*time.Minute, check); err != nil {
		t.Errorf("the definition goes: %v", err)
	}
}

// spiders is a check that every member has so many.
func spiders(crawler *unstructured.Unstructured, want int64) func(context.Context) error {
	return the.inEveryMember(func(ctx context.Context, _ string, member client.Client) error {
		return holds(ctx, member, crawler, want, "spec", "spiders")
	})
}

// healthIn is a check that all clusters of the binding have the health.
func healthIn(namespace string, want workv1alpha2.ResourceHealth) func(context.Context) error {
	return func(ctx context.Context) error {
		var b workv1alpha2.ResourceBinding
		if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "news-crawler"}, &b); err != nil {
			return err
		}
		if len(b.Status.AggregatedStatus) != len(memberNames) {
			return fmt.Errorf("%d clusters report", len(b.Status.AggregatedStatus))
		}
		for _, item := range b.Status.AggregatedStatus {
			if item.Health != want {
				return fmt.Errorf("%s is %s", item.ClusterName, item.Health)
			}
		}
		return nil
	}
}

// keepsWindow changes a field in a member that the server says is the member's.
func keepsWindow(t *testing.T, crawler *unstructured.Unstructured) {
	before := get(t, the.members["west"], crawler)
	moved := before.DeepCopy()
	moved.Object["spec"].(map[string]any)["window"] = "night"
	if err := the.members["west"].Patch(t.Context(), moved, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	patch(t, the.hub, crawler, map[string]any{"depth": int64(2)})
	eventually(t, 30*time.Second, "the change of the template arrives", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return holds(ctx, member, crawler, int64(2), "spec", "depth")
		}))
	for name, want := range map[string]string{"east": "day", "edge": "day", "west": "night"} {
		if err := holds(t.Context(), the.members[name], crawler, want, "spec", "window"); err != nil {
			t.Errorf("in %s: %v", name, err)
		}
	}
}

// hangs stops the server in the middle of its answers.
func hangs(t *testing.T, server *crawlerServer, namespace string, crawler *unstructured.Unstructured) {
	server.hang(true)
	t.Cleanup(func() { server.hang(false) })
	patch(t, the.hub, crawler, map[string]any{"spiders": int64(6)})
	server.asked(t)

	the.Apply(t, fmt.Sprintf(byHandApp, namespace, "nginx:1.29"))
	begin := time.Now()
	eventually(t, 20*time.Second, "a Deployment goes its way", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return member.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, &appsv1.Deployment{})
		}))
	t.Logf("a Deployment took %s to three clusters while the server hung", time.Since(begin).Round(time.Millisecond))
	eventually(t, 30*time.Second, "the policy or the binding says who does not answer", func(ctx context.Context) error {
		return saysWhy(ctx, namespace)
	})
	for _, name := range memberNames {
		if err := holds(t.Context(), the.members[name], crawler, int64(1), "spec", "spiders"); err != nil {
			t.Errorf("in %s, while nobody can say how to divide: %v", name, err)
		}
	}

	server.hang(false)
	eventually(t, time.Minute, "the spiders are divided again", spiders(crawler, 2))
}

// saysWhy errs unless an Event or a condition reports that the kind cannot be
// interpreted.
func saysWhy(ctx context.Context, namespace string) error {
	var b workv1alpha2.ResourceBinding
	if err := the.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "news-crawler"}, &b); err != nil {
		return err
	}
	if c := apimeta.FindStatusCondition(b.Status.Conditions, "Interpreted"); c != nil && c.Reason == "InterpreterFailed" {
		return nil
	}
	var events corev1.EventList
	if err := the.hub.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Reason == "InterpreterFailed" {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %+v, and no Event tells", b.Status.Conditions)
}

// patch sets fields of an object's spec.
func patch(t *testing.T, in client.Client, obj *unstructured.Unstructured, spec map[string]any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Patch(t.Context(), obj.DeepCopy(), client.RawPatch(types.MergePatchType, data)); err != nil {
		t.Fatal(err)
	}
}

// crawlerServer interprets Crawlers, over HTTPS and with a CA of its own.
type crawlerServer struct {
	*httptest.Server
	mu      sync.Mutex
	hanging chan struct{} // closed when it goes on; nil while it does not hang
	waiting int
}

func newCrawlerServer(t *testing.T) *crawlerServer {
	t.Helper()
	s := &crawlerServer{}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(func() { s.hang(false) })
	return s
}

// bundle is the CA that the server's certificate is from, as it is in manifests.
func (s *crawlerServer) bundle() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// hang lets questions wait, or go on.
func (s *crawlerServer) hang(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case on && s.hanging == nil:
		s.hanging, s.waiting = make(chan struct{}), 0
	case !on && s.hanging != nil:
		close(s.hanging)
		s.hanging = nil
	}
}

// asked waits until a question hangs.
func (s *crawlerServer) asked(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, "the server is asked", func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting == 0 {
			return fmt.Errorf("nobody asked")
		}
		return nil
	})
}

func (s *crawlerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil || question.Request == nil {
		http.Error(w, "not a question", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	hanging := s.hanging
	if hanging != nil {
		s.waiting++
	}
	s.mu.Unlock()
	if hanging != nil {
		select {
		case <-hanging:
		case <-r.Context().Done():
			return
		}
	}
	answer := interpretCrawler(question.Request)
	answer.UID = question.Request.UID
	question.Request, question.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(question) // who asked is gone
}

// interpretCrawler answers every operation.
func interpretCrawler(q *configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
	out := &configv1alpha1.ResourceInterpreterResponse{Successful: true}
	var obj, observed unstructured.Unstructured
	if err := obj.UnmarshalJSON(q.Object.Raw); err != nil {
		return refuse(err)
	}
	if q.ObservedObject != nil {
		if err := observed.UnmarshalJSON(q.ObservedObject.Raw); err != nil {
			return refuse(err)
		}
	}
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(obj.Object, path...) // none is 0
		return n
	}
	text := func(of unstructured.Unstructured, path ...string) string {
		s, _, _ := unstructured.NestedString(of.Object, path...) // none is empty
		return s
	}
	patch := func(path string, value any) {
		list, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
		if err != nil {
			out = refuse(err)
			return
		}
		out.Patch, out.PatchType = list, ptr.To(configv1alpha1.PatchTypeJSONPatch)
	}
	switch q.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		out.Replicas = ptr.To(int32(number("spec", "spiders")))
	case configv1alpha1.InterpreterOperationInterpretComponent:
		out.Components = []workv1alpha2.Component{}
	case configv1alpha1.InterpreterOperationReviseReplica:
		patch("/spec/spiders", *q.DesiredReplicas)
	case configv1alpha1.InterpreterOperationRetain:
		patch("/spec/window", text(observed, "spec", "window"))
	case configv1alpha1.InterpreterOperationInterpretHealth:
		out.Healthy = ptr.To(number("status", "crawling") == number("spec", "spiders"))
	case configv1alpha1.InterpreterOperationInterpretStatus:
		out.RawStatus = &runtime.RawExtension{Raw: []byte(`{"crawling":` + strconv.FormatInt(number("status", "crawling"), 10) + `}`)}
	case configv1alpha1.InterpreterOperationInterpretDependency:
		out.Dependencies = []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: q.Namespace, Name: text(obj, "spec", "robots")}}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		sum := int64(0)
		for _, item := range q.AggregatedStatus {
			var status struct{ Crawling int64 }
			if item.Status != nil && json.Unmarshal(item.Status.Raw, &status) == nil {
				sum += status.Crawling
			}
		}
		patch("/status", map[string]any{"crawling": sum})
	default:
		return refuse(fmt.Errorf("no answer to %s", q.Operation))
	}
	return out
}

func refuse(err error) *configv1alpha1.ResourceInterpreterResponse {
	return &configv1alpha1.ResourceInterpreterResponse{Status: &configv1alpha1.RequestStatus{Message: err.Error(), Code: http.StatusBadRequest}}
}
