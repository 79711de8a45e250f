package overview

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

const app = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
`

const policies = `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [east]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
    - targetCluster: {clusterNames: [east]}
      overriders: {imageOverrider: [{component: Tag, operator: replace, value: 1.29-alpine}]}
`

// TestCommands runs all commands on a real control plane with a member.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and a member")
	}
	w := newWorld(t)
	t.Run("status of many", func(t *testing.T) { testMany(t, w) })
	w.start(t)
	w.commit(t, "Sell things", map[string]string{"app/deep/web.yaml": app, "app/policy.yaml": policies})
	w.follow(t)
	w.until(t, "status", "All is ready: clusters 1/1, sources 1/1, Kustomizations 1/1, templates 1/1.")
	w.until(t, "status -o json", "\"nodes\": {\n        \"total\": 1,\n        \"ready\": 1\n")

	for name, line := range map[string]string{
		"status":            "status",
		"status-check":      "status --check -n shop",
		"trace":             "trace deployment/web -n shop",
		"trace-namespace":   "trace namespace shop",
		"trace-policy":      "trace pp/web -n shop",
		"trace-binding":     "trace rb/web-deployment -n shop",
		"trace-ks":          "trace kustomization/web",
		"trace-source":      "trace gitrepositories/fleet",
		"trace-gone":        "trace deployment/gone -n shop",
		"trace-unknown":     "trace boat/web -n shop",
		"trace-nowhere":     "trace deployment/web -n shop --cluster mars",
		"trace-foreign":     "trace service/kubernetes --cluster east",
		"trace-nothing":     "trace",
		"tree":              "tree ks/web",
		"tree-gone":         "tree ks/gone",
		"tree-compact":      "tree deployment web -n shop --compact",
		"tree-json":         "tree rb/web-deployment -n shop -o json",
		"events-types":      "events --types Wrong",
		"events-mars":       "events -C mars",
		"events-nowhere":    "events -n nope",
		"events-missing":    "events --for deployment/nope -n shop",
		"reconcile":         "reconcile kustomization web --with-source",
		"reconcile-gone":    "reconcile source git gone",
		"reconcile-nothing": "reconcile",
		"suspend-which":     "suspend kustomization",
		"resume-which":      "resume",
		"output":            "status -o xml",
		"both":              "status -A -n shop",
	} {
		t.Run(name, func(t *testing.T) { golden(t, name+".txt", w.call(t.Context(), line).String()) })
	}
	t.Run("from a Pod", func(t *testing.T) {
		var pods corev1.PodList
		if err := w.east.List(t.Context(), &pods, client.InNamespace("shop")); err != nil || len(pods.Items) == 0 {
			t.Fatalf("%d Pods, %v", len(pods.Items), err)
		}
		golden(t, "trace-pod.txt", w.call(t.Context(), "trace pod/"+pods.Items[0].Name+" -n shop --cluster east").String())
	})
	t.Run("events of a Kustomization", func(t *testing.T) {
		golden(t, "events-ks.txt", w.until(t, "events --for kustomization/web", "ReconciliationSucceeded").String())
	})
	t.Run("events of a Deployment", func(t *testing.T) {
		for _, want := range []string{"Pod/web-", "Karmada  Normal  ScheduleBindingSucceed", "east     Normal  ScalingReplicaSet", "ReplicaSet/web-"} {
			w.until(t, "events --for deployment/web -n shop", want)
		}
	})
	t.Run("what a commit removed", func(t *testing.T) { testRemoved(t, w) })
	t.Run("suspend and resume", func(t *testing.T) { testSuspend(t, w) })
	t.Run("a control plane that was set back", func(t *testing.T) { testHub(t, w) })
	t.Run("what is wrong", func(t *testing.T) { testWrong(t, w) })
	t.Run("other versions", func(t *testing.T) { testVersions(t, w) })
}

// follow has the control plane follow the repository.
func (w *world) follow(t *testing.T) {
	t.Helper()
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"},
		Spec: sourcev1.GitRepositorySpec{
			URL: w.git.URL("fleet"), Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	if err := w.env.Hub.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	w.until(t, "status", "sources 1/1")
	w.until(t, "events", "NewArtifact")
	apply := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: kustomizev1.KustomizationSpec{
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"},
			Path:      "./app", Interval: metav1.Duration{Duration: time.Hour}, Prune: true, Wait: true,
		},
	}
	if err := w.env.Hub.Create(t.Context(), apply); err != nil {
		t.Fatal(err)
	}
}

// testRemoved traces what a commit has removed, and what the control plane should hold and does not.
func testRemoved(t *testing.T, w *world) {
	const old = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: shop}\n"
	w.commit(t, "Write it down", map[string]string{"app/old.yaml": old})
	if got := w.call(t.Context(), "reconcile ks web --with-source"); got.Code != 0 {
		t.Fatalf("reconcile: %s", got)
	}
	if got := w.call(t.Context(), "trace cm/old -n shop"); got.Code != 0 || !strings.Contains(got.Out, "Kustomization default/web") {
		t.Errorf("before: %s", got)
	}
	commit := w.commit(t, "Forget it", map[string]string{"app/old.yaml": "# nothing\n"})
	if got := w.call(t.Context(), "reconcile ks web --with-source"); got.Code != 0 {
		t.Fatalf("reconcile: %s", got)
	}
	w.until(t, "trace cm/old -n shop", "Kustomization default/web removed it with revision main@sha1:"+commit+".")
}

func testSuspend(t *testing.T, w *world) {
	steps := []struct{ line, want string }{
		{"suspend source git fleet", "✔ suspended GitRepository default/fleet\n"},
		{"suspend source git fleet", "✔ GitRepository default/fleet is suspended already\n"},
		{"reconcile source git fleet", ""},
		{"suspend ks --all", "✔ suspended Kustomization default/web\n"},
		{"resume ks --all", "✔ resumed Kustomization default/web\n"},
	}
	for _, step := range steps {
		if got := w.call(t.Context(), step.line); got.Out != step.want || (got.Code == 0) != (step.want != "") {
			t.Errorf("%s: %s", step.line, got)
		}
	}
	commit := w.commit(t, "Sell more", map[string]string{"app/deep/web.yaml": strings.Replace(app, "replicas: 2", "replicas: 3", 1)})
	got := w.call(t.Context(), "resume source git fleet")
	if got.Code != 0 || !strings.HasSuffix(got.Out, "✔ fetched revision main@sha1:"+commit+"\n") {
		t.Errorf("resume: %s", got)
	}
	got = w.call(t.Context(), "reconcile ks web")
	if got.Code != 0 || !strings.HasSuffix(got.Out, "✔ applied revision main@sha1:"+commit+"\n") {
		t.Errorf("reconcile: %s", got)
	}
}

// testWrong breaks the application, and checks what is reported.
func testWrong(t *testing.T, w *world) {
	w.commit(t, "Forget how to spell", map[string]string{"app/deep/web.yaml": strings.Replace(app, "replicas: 2", "replicas: two", 1)})
	got := w.call(t.Context(), "reconcile ks web --with-source")
	if got.Code != 1 || !strings.Contains(got.Err, "error: Kustomization default/web is not ready: ") {
		t.Errorf("reconcile: %s", got)
	}
	got = w.until(t, "status --check", "NOT READY")
	if got.Code != 1 || !strings.Contains(got.Out, "Kustomization default/web: ") || !strings.Contains(got.Out, "next: ") {
		t.Errorf("status: %s", got)
	}
	// The cluster still runs the last good revision, and the trace shows it.
	if got := w.call(t.Context(), "trace deployment/web -n shop"); !strings.Contains(got.Out, `"Sell more"`) {
		t.Errorf("trace: %s", got)
	}
	w.commit(t, "Name an image that is nowhere", map[string]string{"app/deep/web.yaml": strings.ReplaceAll(app, "nginx:1.29", "fake/nginx:1.29")})
	_ = w.call(t.Context(), "reconcile ks web --with-source --timeout 1s") // it waits for what never gets ready
	got = w.until(t, "status", "ErrImagePull: ")
	if !strings.Contains(got.Out, "Deployment shop/web in east: ") {
		t.Errorf("status: %s", got)
	}
}

// bindings is how many templates a large control plane has here.
const bindings = 1000

// claimed has a policy carry what b stands for.
func claimed(b *workv1alpha2.ResourceBinding) {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "all", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}}}
	propagation.ClaimOf(p).Set(b)
}

// testMany counts the requests that a status costs: pages, not objects.
func testMany(t *testing.T, w *world) {
	namespace := w.env.Namespace(t)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range bindings {
		group.Go(func() error {
			b := &workv1alpha2.ResourceBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%04d-deployment", i)},
				Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
					APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: fmt.Sprintf("web-%04d", i),
				}},
			}
			claimed(b)
			return w.env.Hub.Create(t.Context(), b)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	cfg := rest.CopyConfig(w.env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &requests} })
	hub, err := client.New(cfg, client.Options{Scheme: scheme.New(), Mapper: w.env.Hub.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	found, err := surveyOf(t.Context(), hub, "", true, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if found.Templates.Total != bindings || len(found.Problems) != bindings {
		t.Errorf("templates %+v and %d problems, want %d of each", found.Templates, len(found.Problems), bindings)
	}
	// One for each of nineteen kinds, of eight of workloads and of claims, one for registered clusters, two for what other workloads
	// there are, one more page of bindings, and one for Works that no binding made, unless it reads all of them.
	if got := requests.Load(); got > 32 {
		t.Errorf("%d requests, want 32 at the most", got)
	}
	if err := w.env.Hub.DeleteAllOf(t.Context(), &workv1alpha2.ResourceBinding{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
}

// counted counts requests.
type counted struct {
	next http.RoundTripper
	n    *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.RoundTrip(req)
}
