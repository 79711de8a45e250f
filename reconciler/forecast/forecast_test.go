package forecast_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/build"
)

var source = inventory.Source{Kind: "GitRepository", ObjectKey: client.ObjectKey{Namespace: "flux", Name: "fleet"}}

// files are the files of a revision, by their paths.
type files map[string]string

func (f files) tree() *build.Tree {
	out := map[string][]byte{}
	for name, text := range f {
		out[name] = []byte(text)
	}
	return build.NewTree(out)
}

// configs returns ConfigMaps of the namespace app.
func configs(names ...string) string {
	out := ""
	for _, name := range names {
		out += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: app}\n"
	}
	return out
}

// child returns a Kustomization with the folder of its name, and more of its spec.
func child(name string, more ...string) string {
	return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux}\nspec: {" +
		strings.Join(append([]string{"interval: 1m", "prune: true", "path: ./" + name, "sourceRef: {kind: GitRepository, name: fleet}"}, more...), ", ") + "}\n"
}

// root is the Kustomization that applies the folder root, and what people have allowed it.
func root(allow string) kustomizev1.Kustomization {
	ks := kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "root", CreationTimestamp: metav1.Unix(1, 0), Annotations: map[string]string{inventory.AllowPruneAnnotation: allow}}}
	ks.Spec.Prune, ks.Spec.Path = true, "./root"
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	return ks
}

func forecaster() *forecast.Forecaster {
	by := build.New(build.Limits{})
	return &forecast.Forecaster{
		Build: func(ctx context.Context, ks *kustomizev1.Kustomization, tree *build.Tree) ([]*unstructured.Unstructured, error) {
			return builder.FromFiles(ctx, by, tree, builder.Input{Kustomization: ks})
		},
		Eligible: func(*kustomizev1.Kustomization, string) bool { return true },
		Brake:    inventory.DefaultBrake(),
	}
}

// plans returns what a control plane with the Kustomization root makes of base, and then of head.
func plans(t *testing.T, in plan.FleetInput, ks kustomizev1.Kustomization, base, head files, only string) forecast.Outcome {
	t.Helper()
	state, err := forecast.StateOf(in, []kustomizev1.Kustomization{ks})
	if err != nil {
		t.Fatal(err)
	}
	f := forecaster()
	before, err := f.After(t.Context(), forecast.Query{Before: state, Revision: forecast.Revision{Source: source, Files: base.tree(), Stands: true}})
	if err != nil {
		t.Fatal(err)
	}
	q := forecast.Query{Before: before.After, Revision: forecast.Revision{Source: source, Files: head.tree()}}
	if only != "" {
		q.Only = client.ObjectKey{Namespace: "flux", Name: only}
	}
	out, err := f.After(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// told returns who owns the objects of a state, and the risks, line by line.
func told(out forecast.Outcome) string {
	owned := map[string]string{}
	for id, obj := range out.After.Objects {
		if owner, has := inventory.OwnerOf(obj); has {
			owned[inventory.Describe(id)] = owner.Name
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(owned)) {
		lines = append(lines, strings.NewReplacer("/app/", " ", "/flux/", " ").Replace(name)+" of "+owned[name])
	}
	for _, r := range out.Risks {
		lines = append(lines, "! "+r.Reason+" "+r.Message)
	}
	return strings.Join(lines, "\n")
}

// TestAfter: who owns what once a revision is applied, and what is refused.
func TestAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		base, head  files
		allow, only string
		want        string
	}{
		"an object changes hands": {
			base: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a", "b"), "two/a.yaml": configs("c")},
			head: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b", "c")},
			want: "ConfigMap a of one\nConfigMap b of two\nConfigMap c of two\nKustomization one of root\nKustomization two of root",
		},
		"a child comes, and one of its own": {
			base: files{"root/k.yaml": child("one"), "one/a.yaml": configs("a")},
			head: files{"root/k.yaml": child("one"), "one/a.yaml": configs("a") + child("two"), "two/k.yaml": child("three"), "three/a.yaml": configs("b")},
			want: "ConfigMap a of one\nConfigMap b of three\nKustomization one of root\nKustomization three of two\nKustomization two of one",
		},
		"a child goes, with its own": {
			base:  files{"root/k.yaml": child("one") + configs("r"), "one/k.yaml": child("two") + configs("a"), "two/a.yaml": configs("b")},
			head:  files{"root/k.yaml": configs("r"), "one/k.yaml": child("two") + configs("a"), "two/a.yaml": configs("b")},
			allow: "true",
			want:  "ConfigMap r of root",
		},
		"a child is renamed": {
			base: files{"root/k.yaml": child("one") + configs("r"), "one/a.yaml": configs("a", "b")},
			head: files{"root/k.yaml": child("uno") + configs("r"), "uno/a.yaml": configs("a", "b")},
			want: "ConfigMap a of uno\nConfigMap b of uno\nConfigMap r of root\nKustomization uno of root",
		},
		"a child changes its parent": {
			base: files{"root/k.yaml": child("one") + child("two"), "one/k.yaml": child("three") + configs("a"), "two/a.yaml": configs("b"), "three/a.yaml": configs("c")},
			head: files{"root/k.yaml": child("one") + child("two"), "one/k.yaml": configs("a"), "two/a.yaml": configs("b") + child("three"), "three/a.yaml": configs("c")},
			want: "ConfigMap a of one\nConfigMap b of two\nConfigMap c of three\nKustomization one of root\nKustomization three of two\nKustomization two of root",
		},
		"a child reads another folder": {
			base: files{"root/k.yaml": child("one"), "one/a.yaml": configs("a", "b"), "other/a.yaml": configs("b", "c")},
			head: files{"root/k.yaml": strings.Replace(child("one"), "./one", "./other", 1), "one/a.yaml": configs("a", "b"), "other/a.yaml": configs("b", "c")},
			want: "ConfigMap b of one\nConfigMap c of one\nKustomization one of root",
		},
		"a child without prune keeps what leaves it": {
			base: files{"root/k.yaml": strings.Replace(child("one"), "prune: true", "prune: false", 1), "one/a.yaml": configs("a", "b")},
			head: files{"root/k.yaml": strings.Replace(child("one"), "prune: true", "prune: false", 1), "one/a.yaml": configs("b")},
			want: "ConfigMap a of one\nConfigMap b of one\nKustomization one of root",
		},
		"a child that is suspended keeps what it has": {
			base: files{"root/k.yaml": child("one"), "one/a.yaml": configs("a", "b")},
			head: files{"root/k.yaml": child("one", "suspend: true"), "one/a.yaml": configs("c")},
			want: "ConfigMap a of one\nConfigMap b of one\nKustomization one of root\n" +
				"! NotFollowed Kustomization flux/one: it is suspended, and what it applies once it is resumed changes",
		},
		"a child that was suspended, and is no more": {
			base: files{"root/k.yaml": child("one", "suspend: true"), "one/a.yaml": configs("a")},
			head: files{"root/k.yaml": child("one"), "one/a.yaml": configs("c")},
			want: "ConfigMap c of one\nKustomization one of root",
		},
		"two want one object": {
			base: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b")},
			head: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a"), "two/a.yaml": configs("a", "c")},
			want: "ConfigMap a of one\nConfigMap b of two\nKustomization one of root\nKustomization two of root\n" +
				"! SharedObject Kustomization flux/two: ConfigMap/app/a stands in Kustomization flux/one and in flux/two: remove it from one of them; until then this change is not applied here",
		},
		"two want what a third one gives up": {
			base: files{"root/k.yaml": child("one") + child("two") + child("three"), "one/a.yaml": configs("a", "b"), "two/a.yaml": configs("c"), "three/a.yaml": configs("d")},
			head: files{"root/k.yaml": child("one") + child("two") + child("three"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b", "c"), "three/a.yaml": configs("b", "d", "e")},
			want: "ConfigMap a of one\nConfigMap b of three\nConfigMap c of two\nConfigMap d of three\nConfigMap e of three\nKustomization one of root\nKustomization three of root\nKustomization two of root\n" +
				"! SharedObject Kustomization flux/two: ConfigMap/app/b stands in Kustomization flux/three and in flux/two: remove it from one of them; until then this change is not applied here",
		},
		"one cannot be built, and may want what leaves another one": {
			base: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a", "b"), "two/a.yaml": configs("c")},
			head: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a"), "two/a.yaml": "a: b\n"},
			want: "ConfigMap a of one\nConfigMap b of one\nConfigMap c of two\nKustomization one of root\nKustomization two of root\n" +
				"! BuildFails Kustomization flux/two: it cannot be built, and keeps what it has: two/a.yaml: invalid manifest: apiVersion or kind is missing; keep other YAML out of spec.path, or list it in .sourceignore",
		},
		"one could not be built before": {
			base: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a"), "two/a.yaml": "a: b\n"},
			head: files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a", "b"), "two/a.yaml": "a: b\n"},
			want: "ConfigMap a of one\nConfigMap b of one\nKustomization one of root\nKustomization two of root",
		},
		"what depends on one that cannot be built waits": {
			base: files{"root/k.yaml": child("one") + child("two", "dependsOn: [{name: one}]"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b")},
			head: files{"root/k.yaml": child("one") + child("two", "dependsOn: [{name: one}]"), "one/b.txt": "", "two/a.yaml": configs("b", "c")},
			want: "ConfigMap a of one\nConfigMap b of two\nKustomization one of root\nKustomization two of root\n" +
				"! BuildFails Kustomization flux/one: it cannot be built, and keeps what it has: \n" +
				"! DependencyNotReady Kustomization flux/two: it depends on Kustomization flux/one, which will not be ready at this revision",
		},
		"what depends on one that the change removes waits": {
			base:  files{"root/k.yaml": child("one") + child("two", "dependsOn: [{name: one}]") + child("three", "dependsOn: [{name: two}]"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b"), "three/a.yaml": configs("d")},
			head:  files{"root/k.yaml": child("two", "dependsOn: [{name: one}]") + child("three", "dependsOn: [{name: two}]"), "two/a.yaml": configs("b", "c"), "three/a.yaml": configs("d", "e")},
			allow: "true, kustomization/flux/one",
			want: "ConfigMap b of two\nConfigMap d of three\nKustomization three of root\nKustomization two of root\n" +
				"! DependencyNotReady Kustomization flux/three: it depends on Kustomization flux/two, which will not be ready at this revision\n" +
				"! DependencyNotReady Kustomization flux/two: it depends on Kustomization flux/one, which the change removes: name another one in spec.dependsOn, or none",
		},
		"what depends on one that stays, as its removal is refused, does not wait": {
			base: files{"root/k.yaml": child("one") + child("two", "dependsOn: [{name: one}]") + child("own"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b"), "own/a.yaml": configs("y")},
			head: files{"root/k.yaml": child("two", "dependsOn: [{name: one}]") + child("own") + configs("y"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b", "c"), "own/a.yaml": configs("y")},
			want: "ConfigMap a of one\nConfigMap b of two\nConfigMap c of two\nConfigMap y of own\nKustomization one of root\nKustomization own of root\nKustomization two of root\n" +
				"! SharedObject Kustomization flux/root: ConfigMap/app/y stands in Kustomization flux/own and in flux/root: remove it from one of them; until then this change is not applied here",
		},
		"a namespace is dropped that has objects": {
			base:  files{"root/k.yaml": configs("a", "b") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n"},
			head:  files{"root/k.yaml": configs("a", "c")},
			allow: "true, namespace/app",
			want: "ConfigMap a of root\nConfigMap b of root\nNamespace/app of root\n" +
				"! BrakeCloses Kustomization flux/root: this change drops Namespace/app and has ConfigMap/app/a, ConfigMap/app/c in it: nothing was applied; drop that, too, or commit the namespace again",
		},
		"the brake closes": {
			base: files{"root/k.yaml": child("one") + configs("r"), "one/a.yaml": configs("a", "b", "c", "d", "e", "f", "g")},
			head: files{"root/k.yaml": configs("r")},
			want: "ConfigMap r of root\n" +
				`! BrakeCloses Kustomization flux/root: this change would remove 1 of 2 objects (Kustomization/flux/one with 7 objects): nothing was applied; commit it again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "COMMIT", or in a commit by the trailer Flotilla-Allow-Delete: kustomization/flux/one`,
		},
		"a Kustomization that is not among these files": {
			base: files{"root/k.yaml": configs("r")},
			head: files{"root/k.yaml": configs("r") + strings.Replace(child("far"), "name: fleet", "name: other", 1)},
			want: "ConfigMap r of root\nKustomization far of root\n" +
				"! NotFollowed Kustomization flux/far: it comes, and its source is GitRepository flux/other, which is not planned here",
		},
		"what is told to stay stays": {
			base: files{"root/k.yaml": configs("r") + strings.Replace(configs("a"), "namespace: app", `namespace: app, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}`, 1)},
			head: files{"root/k.yaml": configs("r")},
			want: "ConfigMap a of root\nConfigMap r of root",
		},
		"only the part of one is shown": {
			base: files{"root/k.yaml": child("one") + child("two") + child("three"), "one/a.yaml": configs("a", "b"), "two/a.yaml": configs("c", "d"), "three/a.yaml": configs("e")},
			head: files{"root/k.yaml": child("one") + child("two") + child("three"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b", "c"), "three/a.yaml": configs("f")},
			only: "one",
			want: "ConfigMap a of one\nConfigMap b of two\nConfigMap c of two\nConfigMap d of two\nConfigMap e of three\nKustomization one of root\nKustomization three of root\nKustomization two of root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := told(plans(t, plan.FleetInput{Now: time.Unix(9, 0)}, root(tc.allow), tc.base, tc.head, tc.only))
			if !matches(tc.want, got) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}

// TestNotTaken: what the control plane does not take of one Kustomization holds that one alone, and what others take over is
// completed, too.
func TestNotTaken(t *testing.T) {
	base := files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a"), "two/a.yaml": configs("b")}
	head := files{"root/k.yaml": child("one") + child("two"), "one/a.yaml": configs("a", "bad"), "two/a.yaml": configs("b", "c")}
	state, err := forecast.StateOf(plan.FleetInput{}, []kustomizev1.Kustomization{root("")})
	if err != nil {
		t.Fatal(err)
	}
	f := forecaster()
	before, err := f.After(t.Context(), forecast.Query{Before: state, Revision: forecast.Revision{Source: source, Files: base.tree(), Stands: true}})
	if err != nil {
		t.Fatal(err)
	}
	f.Complete = func(_ context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
		out := make([]*unstructured.Unstructured, len(objects))
		for i, obj := range objects {
			if obj.GetName() == "bad" {
				return nil, forecast.NotTakenError{Err: fmt.Errorf("it is bad")}
			}
			out[i] = obj.DeepCopy()
			out[i].SetAnnotations(map[string]string{"completed": "yes"})
		}
		return out, nil
	}
	out, err := f.After(t.Context(), forecast.Query{Before: before.After, Revision: forecast.Revision{Source: source, Files: head.tree()}})
	if err != nil {
		t.Fatal(err)
	}
	want := "ConfigMap a of one\nConfigMap b of two\nConfigMap c of two\nKustomization one of root\nKustomization two of root\n! NotTaken Kustomization flux/one: it is bad; it keeps what it has"
	if diff := cmp.Diff(want, told(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"a": "", "b": "yes", "c": "yes"} {
		if got := out.After.Objects[idOfConfig(name)].GetAnnotations()["completed"]; got != want {
			t.Errorf("%s is completed: %q, want %q", name, got, want)
		}
	}
}

// matches compares line by line; a line that ends in ": " may go on.
func matches(want, got string) bool {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	return slices.EqualFunc(wants, gots, func(w, g string) bool { return w == g || strings.HasSuffix(w, ": ") && strings.HasPrefix(g, w) })
}

// TestDeep: Kustomizations are followed to any depth that somebody may use, and no further.
func TestDeep(t *testing.T) {
	chain := func(n int) files {
		out := files{"root/k.yaml": child("k00") + configs("r")}
		for i := range n {
			out[fmt.Sprintf("k%02d/k.yaml", i)] = configs(fmt.Sprintf("c%02d", i)) + child(fmt.Sprintf("k%02d", i+1))
		}
		out[fmt.Sprintf("k%02d/k.yaml", n)] = configs("last")
		return out
	}
	for n, want := range map[int]string{20: "", 60: "NotFollowed"} {
		out := plans(t, plan.FleetInput{}, root("true"), files{"root/k.yaml": configs("r")}, chain(n), "")
		reasons := ""
		for _, r := range out.Risks {
			reasons += r.Reason
		}
		_, there := out.After.Objects[inventory.ID{GroupKind: idOfConfig("last").GroupKind, Namespace: "app", Name: "last"}]
		if reasons != want || there != (want == "") {
			t.Errorf("%d deep: risks %q, want %q; the last is there: %t", n, reasons, want, there)
		}
	}
}

func idOfConfig(name string) inventory.ID {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	obj.SetNamespace("app")
	obj.SetName(name)
	return inventory.IDOf(obj)
}

// TestUnknownCluster: a policy that names a cluster which nobody has, and takes what runs elsewhere from there, is refused
// as the apply loop refuses it.
func TestUnknownCluster(t *testing.T) {
	policy := func(clusters string) string {
		return "---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: app}\nspec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {clusterAffinity: {clusterNames: [" + clusters + "]}}\n"
	}
	binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "a-configmap"}}
	binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "app", Name: "a"}
	binding.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
	in := plan.FleetInput{Now: time.Unix(9, 0), Bindings: []workv1alpha2.Binding{binding}}
	for _, name := range []string{"east", "west"} {
		in.Clusters = append(in.Clusters, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	out := plans(t, in, root(""), files{"root/k.yaml": configs("a") + policy("east, west")}, files{"root/k.yaml": configs("a") + policy("east, wset")}, "")
	if len(out.Risks) != 1 || out.Risks[0].Reason != "UnknownCluster" || !strings.Contains(out.Risks[0].Message, "1 object (ConfigMap app/a) out of west; this change is not applied: correct it") {
		t.Errorf("risks = %+v", out.Risks)
	}
	if got := out.After.Fleet.Policies; len(got) != 1 || !slices.Equal(got[0].(*policyv1alpha1.PropagationPolicy).Spec.Placement.ClusterAffinity.ClusterNames, []string{"east", "wset"}) {
		t.Errorf("it is not planned as if it was allowed: %v", got)
	}
}

// TestNoSource: a source that no Kustomization has is an error.
func TestNoSource(t *testing.T) {
	state, err := forecast.StateOf(plan.FleetInput{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = forecaster().After(t.Context(), forecast.Query{Before: state, Revision: forecast.Revision{Source: source, Files: files{}.tree()}})
	if err == nil || err.Error() != "no Kustomization has the source GitRepository flux/fleet" {
		t.Errorf("error = %v", err)
	}
}

// TestWhatGoesAlongIsNotWithdrawn: a policy that takes along no more what its Deployment still refers to is refused as the
// apply loop refuses it.
func TestWhatGoesAlongIsNotWithdrawn(t *testing.T) {
	policy := func(deps bool) string {
		return fmt.Sprintf("---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: app}\nspec:\n  propagateDeps: %t\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]\n  placement: {}\n", deps)
	}
	const refers = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: app}\nspec: {template: {spec: {containers: [{name: app, envFrom: [{configMapRef: {name: a}}]}]}}}\n"
	clusters := []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
	user := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web-deployment"}}
	user.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "app", Name: "web"}
	user.Spec.Clusters, user.Spec.PropagateDeps = clusters, true
	along := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "a-configmap"}}
	along.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "app", Name: "a"}
	along.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "app", Name: "web-deployment", Clusters: clusters}}
	in := plan.FleetInput{Now: time.Unix(9, 0), Bindings: []workv1alpha2.Binding{user, along}}
	for _, c := range clusters {
		in.Clusters = append(in.Clusters, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name}})
	}
	base := files{"root/k.yaml": configs("a") + refers + policy(true)}
	for head, want := range map[string]string{
		configs("a") + refers + policy(false): "propagateDeps is off, and Deployment app/web still refers to what went along: PropagationPolicy/app/web would take 1 object (ConfigMap app/a) out of east, west; this change is not applied: correct it",
		configs("a") + refers + policy(true):  "",
		configs("a") + strings.Replace(refers, "{name: app, envFrom: [{configMapRef: {name: a}}]}", "{name: app}", 1) + policy(false):                                     "",
		configs("a") + refers + policy(false) + strings.NewReplacer("name: web", "name: maps", "apps/v1, kind: Deployment", "v1, kind: ConfigMap").Replace(policy(false)): "",
	} {
		got := ""
		for _, r := range plans(t, in, root(""), base, files{"root/k.yaml": head}, "").Risks {
			got += r.Reason + " " + r.Message
		}
		if want == "" && got != "" || want != "" && !(strings.HasPrefix(got, "BrakeCloses ") && strings.Contains(got, want)) {
			t.Errorf("risks %q, want %q for\n%s", got, want, head)
		}
	}
}
