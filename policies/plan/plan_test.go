package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestPrune(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"what the hub's server keeps": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: "1", generation: 2, creationTimestamp: x, managedFields: [], selfLink: s, finalizers: [f], ownerReferences: [o], deletionTimestamp: d, deletionGracePeriodSeconds: 1, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}, status: {}, data: {a: b}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}`,
		},
		"a deployment's revision": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {deployment.kubernetes.io/revision: "3", deployment.kubernetes.io/revision-history: "1", keep: me}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {keep: me}}}`,
		},
		"a job's selector and time to live": {
			`{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {ttlSecondsAfterFinished: 1, selector: {matchLabels: {batch.kubernetes.io/controller-uid: x, controller-uid: x}}, template: {metadata: {labels: {controller-uid: x, job-name: j, batch.kubernetes.io/controller-uid: x, batch.kubernetes.io/job-name: j, app: a}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {template: {metadata: {labels: {app: a}}}}}`,
		},
		"not one that a user chose": {
			`{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {manualSelector: true, ttlSecondsAfterFinished: 1, selector: {matchLabels: {controller-uid: x}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: x}}}}`,
		},
		"a service's addresses":         {`{apiVersion: v1, kind: Service, metadata: {}, spec: {clusterIP: 1.1.1.1, clusterIPs: [1.1.1.1], ports: []}}`, `{apiVersion: v1, kind: Service, metadata: {}, spec: {ports: []}}`},
		"a headless service stays so":   {`{apiVersion: v1, kind: Service, metadata: {}, spec: {clusterIP: None, clusterIPs: [None]}}`, `{apiVersion: v1, kind: Service, metadata: {}, spec: {clusterIP: None, clusterIPs: [None]}}`},
		"a token":                       {`{apiVersion: v1, kind: Secret, metadata: {annotations: {kubernetes.io/service-account.uid: u}}, type: kubernetes.io/service-account-token, data: {token: x}}`, `{apiVersion: v1, kind: Secret, metadata: {}, type: kubernetes.io/service-account-token}`},
		"another secret keeps its data": {`{apiVersion: v1, kind: Secret, metadata: {}, type: Opaque, data: {token: x}}`, `{apiVersion: v1, kind: Secret, metadata: {}, type: Opaque, data: {token: x}}`},
		"an account's tokens":           {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}, secrets: [{name: sa-token-x}, {name: other}]}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}, secrets: [{name: other}]}`},
		"an account with tokens alone":  {`{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}, secrets: [{name: sa-token-x}]}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}}`},
		"a claim's node":                {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {volume.kubernetes.io/selected-node: n}}}`, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {}}`},
		"a namespace's finalizer":       {`{apiVersion: v1, kind: Namespace, metadata: {name: n}, spec: {finalizers: [kubernetes]}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: n}}`},
		"a kind of the same name":       {`{apiVersion: example.io/v1, kind: Service, metadata: {}, spec: {clusterIP: 1.1.1.1}}`, `{apiVersion: example.io/v1, kind: Service, metadata: {}, spec: {clusterIP: 1.1.1.1}}`},
		"a spec of an unexpected shape": {`{apiVersion: v1, kind: Service, metadata: {}, spec: 7}`, `{apiVersion: v1, kind: Service, metadata: {}, spec: 7}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, tc.object)
			for range 2 { // pruning twice is pruning once
				plan.Prune(obj)
				if diff := cmp.Diff(object(t, tc.want).Object, obj.Object); diff != "" {
					t.Fatalf("pruned (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func clusters(names ...string) func(string) (*clusterv1alpha1.Cluster, bool) {
	return func(name string) (*clusterv1alpha1.Cluster, bool) {
		for _, n := range names {
			if n == name {
				return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: n}}, true
			}
		}
		return nil, false
	}
}

func input(t *testing.T) plan.WorksInput {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "bid"},
	}}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u"},
		Replicas: 3,
		Clusters: []workv1alpha2.TargetCluster{{Name: "b", Replicas: 1}, {Name: "a", Replicas: 2}},
	}
	return plan.WorksInput{
		Binding:     b,
		Template:    object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u, generation: 4}, spec: {replicas: 3, template: {spec: {containers: [{name: a, image: nginx}]}}}, status: {replicas: 3}}`),
		Cluster:     clusters("a", "b"),
		Interpreter: interpreter.Native(),
	}
}

func TestWorks(t *testing.T) {
	in := input(t)
	plans, err := plan.Works(in)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := propagation.Digest(in.Template)
	if err != nil {
		t.Fatal(err)
	}
	id := plan.WorkID("bid", "a")
	want := &workv1alpha1.Work{
		TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work"},
		ObjectMeta: metav1.ObjectMeta{
			Name: workv1alpha2.WorkName("Deployment", "web", "shop"), Namespace: "karmada-es-a",
			Labels: map[string]string{"resourcebinding.karmada.io/permanent-id": "bid", "work.karmada.io/permanent-id": id},
			Annotations: map[string]string{
				"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "web-deployment",
				"work.karmada.io/conflict-resolution": "abort", propagation.DigestAnnotation: digest,
			},
			Finalizers: []string{"karmada.io/execution-controller"},
		},
		Spec: workv1alpha1.WorkSpec{SuspendDispatching: ptr.To(false), PreserveResourcesOnDeletion: ptr.To(false)},
	}
	got := plans[0].Work.DeepCopy()
	manifest := object(t, string(got.Spec.Workload.Manifests[0].Raw))
	got.Spec.Workload.Manifests = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Work (-want +got):\n%s", diff)
	}
	wantManifest := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: shop
  name: web
  labels:
    karmada.io/managed: "true"
    resourcebinding.karmada.io/permanent-id: bid
    work.karmada.io/permanent-id: `+id+`
  annotations:
    resourcebinding.karmada.io/namespace: shop
    resourcebinding.karmada.io/name: web-deployment
    resourcetemplate.karmada.io/uid: u
    resourcetemplate.karmada.io/generation: "4"
    resourcetemplate.karmada.io/managed-annotations: resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace
    resourcetemplate.karmada.io/managed-labels: karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id
    work.karmada.io/conflict-resolution: abort
    work.karmada.io/namespace: karmada-es-a
    work.karmada.io/name: `+want.Name+`
spec: {replicas: 2, template: {spec: {containers: [{name: a, image: nginx}]}}}`)
	if diff := cmp.Diff(wantManifest.Object, manifest.Object); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if _, ok := in.Template.Object["status"]; !ok || in.Template.GetLabels() != nil {
		t.Error("the template that came in was changed")
	}
	again, err := plan.Works(input(t))
	if diff := cmp.Diff(plans, again); diff != "" || err != nil {
		t.Errorf("equal input gives other output: %v\n%s", err, diff)
	}
}

func TestWorksSayWhatHappensToDrift(t *testing.T) {
	cases := map[string]struct {
		policy   policyv1alpha1.DriftBehavior
		template string // its annotation
		want     string
	}{
		"nobody says anything":             {"", "", ""},
		"the policy puts it back":          {policyv1alpha1.DriftRevert, "", ""},
		"the policy reports it":            {policyv1alpha1.DriftReport, "", "report"},
		"the template reports it":          {"", "report", "report"},
		"the template puts it back":        {policyv1alpha1.DriftReport, "revert", ""},
		"the template says what is no way": {policyv1alpha1.DriftReport, "ignore", "report"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Binding.BindingSpec().Drift = tc.policy
			if tc.template != "" {
				in.Template.SetAnnotations(map[string]string{workv1alpha2.DriftAnnotation: tc.template})
			}
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			namespace := plan.Namespace(in.Template, &clusterv1alpha1.Cluster{}, nil)
			if got := plans[0].Work.Annotations[workv1alpha2.DriftAnnotation]; got != tc.want {
				t.Errorf("annotation = %q, want %q", got, tc.want)
			}
			if got, want := namespace.Work.Annotations[workv1alpha2.DriftAnnotation], tc.template == "report"; (got != "") != want {
				t.Errorf("annotation of a namespace = %q", got)
			}
			plain := plans[0].Work.DeepCopy()
			delete(plain.Annotations, workv1alpha2.DriftAnnotation)
			if got := plan.Same(plain, plans[0].Work); got != (tc.want == "") {
				t.Errorf("same as one without = %t", got)
			}
		})
	}
}

func TestWorksFaults(t *testing.T) {
	in := input(t)
	in.Binding.(*workv1alpha2.ResourceBinding).Labels = nil
	if _, err := plan.Works(in); !errors.Is(err, plan.ErrNoPermanentID) {
		t.Errorf("error = %v, want %v", err, plan.ErrNoPermanentID)
	}
	in = input(t)
	in.Cluster = clusters("b")
	in.Overrides = []policyv1alpha1.Override{&policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op"},
		Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/gone", Operator: "remove"}}},
		}}},
	}}
	plans, err := plan.Works(in)
	if err != nil {
		t.Fatal(err)
	}
	var faulty *override.Error
	if !errors.Is(plans[0].Err, plan.ErrUnknownCluster) || !errors.As(plans[1].Err, &faulty) || plans[0].Work != nil || plans[1].Work != nil {
		t.Errorf("faults = %v, %v", plans[0].Err, plans[1].Err)
	}
}

func TestTargets(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Replicas:   3,
		Clusters:   []workv1alpha2.TargetCluster{{Name: "b", Replicas: 2}},
		RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "b", Replicas: 9}, {Name: "a", Replicas: 1}}}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "z", PurgeMode: policyv1alpha1.PurgeModeGracefully}, {FromCluster: "d", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "n", PurgeMode: policyv1alpha1.PurgeModeNever},
			{FromCluster: "b", PurgeMode: policyv1alpha1.PurgeModeDirectly}, // it has no other place yet
		},
	}
	if diff := cmp.Diff([]workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}, {Name: "b", Replicas: 2}}, plan.Targets(spec)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "n", "z"}, plan.Keeps(spec)); diff != "" {
		t.Errorf("keeps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"d"}, plan.LeaveFirst(spec)); diff != "" {
		t.Errorf("leave first (-want +got):\n%s", diff)
	}
	spec.Clusters = nil // another scheduler has yet to find a place: nothing goes before
	if keeps, first := plan.Keeps(spec), plan.LeaveFirst(spec); !slices.Equal(keeps, []string{"a", "b", "d", "n", "z"}) || len(first) > 0 {
		t.Errorf("placed nowhere: keeps %v, leaves %v first", keeps, first)
	}
}

// TestPrunedFrom: clusters from which a template was pruned hold it no more, but where others need it.
func TestPrunedFrom(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "c"}}}}
	if got := plan.SpecOf(b); got != &b.Spec {
		t.Error("a binding that was pruned from no cluster has another spec than its own")
	}
	plan.SetPrunedFrom(b, []string{"c", "a", "c"})
	if diff := cmp.Diff([]string{"b", "c"}, plan.Keeps(plan.SpecOf(b))); diff != "" {
		t.Errorf("keeps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "c"}, plan.PrunedFrom(b)); diff != "" || len(b.Spec.Clusters) != 3 {
		t.Errorf("pruned from (-want +got):\n%s\nplaced on %v", diff, b.Spec.Clusters)
	}
	plan.SetPrunedFrom(b, nil)
	if got := plan.SpecOf(b); got != &b.Spec || len(b.Annotations) > 0 {
		t.Errorf("it is back, and its annotations are %v", b.Annotations)
	}
}

func TestSame(t *testing.T) {
	plans, err := plan.Works(input(t))
	if err != nil {
		t.Fatal(err)
	}
	want := plans[0].Work
	cases := map[string]struct {
		edit func(*workv1alpha1.Work)
		same bool
	}{
		"itself":               {func(*workv1alpha1.Work) {}, true},
		"labels of others":     {func(w *workv1alpha1.Work) { w.Labels["x"] = "y" }, true},
		"finalizers of others": {func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, "x") }, true},
		"the same JSON in another order": {func(w *workv1alpha1.Work) {
			raw := string(w.Spec.Workload.Manifests[0].Raw)
			w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(strings.Replace(raw, `"kind":"Deployment",`, "", 1), `{"apiVersion"`, `{"kind":"Deployment","apiVersion"`, 1))
		}, true},
		"another label":                   {func(w *workv1alpha1.Work) { w.Labels[workv1alpha2.WorkPermanentIDLabel] = "x" }, false},
		"another manifest":                {func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests[0].Raw = []byte(`{"kind":"A"}`) }, false},
		"suspended":                       {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = ptr.To(true) }, false},
		"as somebody else":                {func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.AppliedByAnnotation] = `[{"user":"x"}]` }, false},
		"a record of overrides that went": {func(w *workv1alpha1.Work) { w.Annotations[policyv1alpha1.AppliedOverrides] = "[]" }, false},
		"an owner that somebody added": {func(w *workv1alpha1.Work) {
			w.OwnerReferences = []metav1.OwnerReference{{Kind: "ConfigMap", Name: "x", UID: "u"}}
		}, true},
		"without our finalizer": {func(w *workv1alpha1.Work) { w.Finalizers = nil }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := want.DeepCopy()
			tc.edit(have)
			if got := plan.Same(want, have); got != tc.same {
				t.Errorf("same = %v, want %v", got, tc.same)
			}
		})
	}
}

func TestNamespace(t *testing.T) {
	ns := object(t, `{metadata: {name: shop, uid: ns-1, labels: {kubernetes.io/metadata.name: shop}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`)
	cop := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "cop"},
		Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: "add", Value: map[string]string{"tier": "a"}}}},
		}}},
	}
	cluster, _ := clusters("a")("a")
	got := plan.Namespace(ns, cluster, []policyv1alpha1.Override{cop})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	owner := got.Work.OwnerReferences[0]
	manifest := object(t, string(got.Work.Spec.Workload.Manifests[0].Raw))
	if owner.UID != "ns-1" || owner.Kind != "Namespace" || !*owner.Controller || got.Work.Namespace != "karmada-es-a" {
		t.Errorf("Work %s is owned by %v", got.Work.Namespace, owner)
	}
	if manifest.GetKind() != "Namespace" || manifest.GetLabels()["tier"] != "a" || manifest.Object["spec"] != nil || manifest.Object["status"] != nil ||
		manifest.GetAnnotations()["work.karmada.io/conflict-resolution"] != "abort" {
		t.Errorf("manifest = %v", manifest)
	}
	skip := propagation.DefaultSkipRules()
	synced := map[string]bool{}
	for _, name := range []string{"shop", "default", "kube-system", "karmada-es-a", "skipped"} {
		obj := &metav1.ObjectMeta{Name: name}
		if name == "skipped" {
			obj.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}
		}
		synced[name] = plan.SyncsNamespace(obj, skip)
	}
	want := map[string]bool{"shop": true, "default": false, "kube-system": false, "karmada-es-a": false, "skipped": false}
	if diff := cmp.Diff(want, synced); diff != "" {
		t.Errorf("synced (-want +got):\n%s", diff)
	}
}

// TestFleetOrder: the order of inputs does not matter.
func TestFleetOrder(t *testing.T) {
	run := func(names ...string) []plan.TemplatePlan {
		in := plan.FleetInput{Interpreter: interpreter.Native(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		for _, n := range names {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: n}}
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}}}}
			in.Clusters = append(in.Clusters, c)
			in.Templates = append(in.Templates, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: `+n+`}}`))
			p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: n, Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: n}}}
			p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}
			in.Policies = append(in.Policies, p)
		}
		return plan.Fleet(in)
	}
	first := run("a", "b", "c")
	if diff := cmp.Diff(first, run("c", "a", "b")); diff != "" {
		t.Errorf("the order of inputs matters:\n%s", diff)
	}
	if len(first) != 3 || len(first[0].Works) != 3 {
		t.Errorf("%d templates, %d Works", len(first), len(first[0].Works))
	}
}

func BenchmarkWorks(b *testing.B) {
	in := plan.WorksInput{
		Binding:     &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "bid"}}},
		Template:    &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}, "spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "nginx"}}}}}}},
		Interpreter: interpreter.Native(), Cluster: clusters("a", "b", "c"),
	}
	in.Binding.BindingSpec().Replicas = 3
	in.Binding.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 1}, {Name: "c", Replicas: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plan.Works(in); err != nil {
			b.Fatal(err)
		}
	}
}
