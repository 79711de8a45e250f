package rehearsal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
	"github.com/flotilla-io/flotilla/policies/whatif"
	"github.com/flotilla-io/flotilla/reconciler/forecast/rehearsal"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

const canary = "CANARY-31c9"

var source = inventory.Source{Kind: "GitRepository", ObjectKey: client.ObjectKey{Namespace: "flux", Name: "fleet"}}

// kustomization applies the folder of its name, with variables of a ConfigMap and a Secret, both called vars.
func kustomization(name string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: name}}
	ks.Spec.Prune, ks.Spec.Path = true, "./"+name
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	ks.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}, {Kind: "Secret", Name: "vars"}}}
	return ks
}

// hub returns a control plane of two clusters with a Kustomization.
func hub(t *testing.T, more ...client.Object) client.WithWatch {
	t.Helper()
	objects := []client.Object{
		kustomization("app"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "vars"}, Data: map[string]string{"color": "blue"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "other"}, Data: map[string]string{"plan": canary}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "vars"}, Data: map[string][]byte{"password": []byte(canary)}},
	}
	for _, name := range []string{"eu-1", "us-1"} {
		objects = append(objects, &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": name[:2]}},
			Status: clusterv1alpha1.ClusterStatus{
				Conditions:     []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
				APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}}},
			},
		})
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(objects, more...)...).WithRESTMapper(mapper).Build()
}

func read(t *testing.T, hub client.WithWatch) *rehearsal.Fleet {
	t.Helper()
	f, err := rehearsal.Read(t.Context(), rehearsal.Means{Hub: hub, Mapper: hub.RESTMapper(), Machine: lua.New(lua.Options{Now: time.Now, Time: time.Minute}), Builder: build.New(build.Limits{}), Brake: inventory.DefaultBrake()}, time.Unix(1_900_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// files are of pairs of paths and texts.
func files(pairs ...string) artifact.Files {
	out := artifact.Files{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = artifact.File{Data: []byte(pairs[i+1])}
	}
	return out
}

func config(name, data string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: app}\ndata: {" + data + "}\n"
}

const policy = "---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: app}\n" +
	"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [eu-1, us-1]}}}\n"

const override = "---\napiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: eu, namespace: app}\n" +
	"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: web}], overrideRules: [{targetCluster: {labelSelector: {matchLabels: {region: eu}}}, overriders: {plaintext: [{path: /data/a, operator: replace, value: VALUE}]}}]}\n"

func compared(t *testing.T, base, head artifact.Files) comparison.Comparison {
	t.Helper()
	f := read(t, hub(t))
	at, err := f.At(t.Context(), source, rehearsal.Revision{Name: "main@sha1:1", Files: base})
	if err != nil {
		t.Fatal(err)
	}
	c, err := at.With(t.Context(), rehearsal.Revision{Name: "head", Files: head})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWith(t *testing.T) {
	web := func(more string) artifact.Files {
		return files("app/web.yaml", config("web", "a: one")+policy+more)
	}
	for name, tc := range map[string]struct {
		base, head artifact.Files
		want       string
	}{
		"nothing changes": {web(""), web(""), "Nothing changes in any cluster."},
		"an override of one region changes its clusters": {
			web(strings.ReplaceAll(override, "VALUE", "two")), web(strings.ReplaceAll(override, "VALUE", "three")),
			"1 object changes in 1 cluster: 1 updated",
		},
		"what goes is deleted everywhere": {
			files("app/web.yaml", config("web", "a: one")+config("more", "a: one")+policy), web(""), "1 object changes in 2 clusters: 2 deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := report.Summary(compared(t, tc.base, tc.head)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestIf: what a change does once something happens to clusters, which is no part of the change without it.
func TestIf(t *testing.T) {
	spread := strings.Replace(policy, "clusterNames: [eu-1, us-1]}", "clusterNames: [eu-1, us-1]}, spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]", 1)
	web := func(value string) artifact.Files { return files("app/web.yaml", config("web", "a: "+value)+spread) }
	at, err := read(t, hub(t)).At(t.Context(), source, rehearsal.Revision{Name: "main@sha1:1", Files: web("one")})
	if err != nil {
		t.Fatal(err)
	}
	suppose := func(head artifact.Files, words ...string) string {
		t.Helper()
		events, err := whatif.Parse(words)
		if err != nil {
			t.Fatal(err)
		}
		c, err := at.If(t.Context(), rehearsal.Revision{Name: "head", Files: head}, events)
		if err != nil {
			return err.Error()
		}
		return report.Summary(c)
	}
	for name, tc := range map[string]struct{ got, want string }{
		"a cluster is removed, and nothing else changes":  {suppose(web("one"), "eu-1:remove"), "If eu-1 is removed: 1 object changes in 2 clusters: 1 deleted, 1 created; 1 risk"},
		"another cluster is removed":                      {suppose(web("one"), "us-1:remove"), "If us-1 is removed: no object changes; 1 risk"},
		"a cluster that there is not":                     {suppose(web("one"), "eu-9:down"), "there is no cluster eu-9"},
		"a cluster is removed, and the change is an edit": {suppose(web("two"), "us-1:remove"), "If us-1 is removed: 1 object changes in 1 cluster: 1 updated; 1 risk"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %q, want %q", name, tc.got, tc.want)
		}
	}
	c, err := at.With(t.Context(), rehearsal.Revision{Name: "head", Files: web("one")})
	if got := report.Summary(c); err != nil || got != "Nothing changes in any cluster." {
		t.Errorf("what was supposed lasts: %q, %v", got, err)
	}
}

// TestAHeadThatDoesNotBuild: it is told with file and line, by a risk.
func TestAHeadThatDoesNotBuild(t *testing.T) {
	c := compared(t, files("app/web.yaml", config("web", "a: one")+policy), files("app/web.yaml", "a: [\n\nb: }"))
	if len(c.Risks) != 1 || c.Risks[0].Reason != comparison.RiskBuild || !strings.Contains(c.Risks[0].Message, "app/web.yaml: invalid manifest: line ") {
		t.Errorf("risks: %+v", c.Risks)
	}
}

// TestNothingIsPrinted: a head that puts all variables that it can name into a ConfigMap has values of the ConfigMap alone that the
// Kustomization reads already.
func TestWhatIsRefusedAsBefore(t *testing.T) {
	const broken = "a: b\n"
	for name, tc := range map[string]struct {
		base, head artifact.Files
		told       bool
	}{
		"other files change":                       {files("app/web.yaml", broken), files("app/web.yaml", broken, "README.md", "x"), false},
		"its files change":                         {files("app/web.yaml", broken, "app/b.yaml", config("web", "one")), files("app/web.yaml", broken, "app/b.yaml", config("web", "two")), true},
		"files change to which its own may lead":   {files("app/web.yaml", "a: ../base\n", "base/b.yaml", "x"), files("app/web.yaml", "a: ../base\n", "base/b.yaml", "y"), true},
		"files change that are next to its folder": {files("app/web.yaml", broken, "apple/b.yaml", "x"), files("app/web.yaml", broken, "apple/b.yaml", "y"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := compared(t, tc.base, tc.head)
			told := len(c.Risks) == 1 && c.Risks[0].Reason == comparison.RiskNotFollowed && strings.Contains(c.Risks[0].Message, "flux/app: it is refused as before, and what it applies once it is not changes")
			if told != tc.told || len(c.Risks) > 1 {
				t.Errorf("risks %v", c.Risks)
			}
		})
	}
}

func TestNothingIsPrinted(t *testing.T) {
	base := files("app/web.yaml", config("web", "a: one")+policy)
	thief := kustomization("thief")
	thief.Spec.PostBuild.SubstituteFrom = append(thief.Spec.PostBuild.SubstituteFrom, kustomizev1.SubstituteReference{Kind: "ConfigMap", Name: "other"})
	child := "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: thief, namespace: flux}\nspec: {interval: 1m, prune: true, path: ./thief, sourceRef: {kind: GitRepository, name: fleet}, " +
		"postBuild: {substituteFrom: [{kind: Secret, name: vars}, {kind: ConfigMap, name: vars}, {kind: ConfigMap, name: other}]}}\n"
	head := files("app/web.yaml", config("web", `a: "${color}-${password}"`)+policy+child, "thief/web.yaml", config("stolen", `a: "${color}", b: "${password}"`)+config("also-stolen", `a: "${plan}"`))
	c := compared(t, base, head)
	text, err := report.JSON(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(text) + report.Markdown(c, report.MarkdownOptions{})
	if strings.Contains(shown, canary) {
		t.Errorf("the value is in %s", shown)
	}
	if !strings.Contains(shown, "stolen") {
		t.Errorf("the Kustomization among the files was not followed: %s", shown)
	}
}

// TestAHeadThatBringsTooMuch: it is not planned, as each object is for all clusters.
func TestAHeadThatBringsTooMuch(t *testing.T) {
	head := config("web", "a: one") + policy
	for n := range 1005 {
		head += config(fmt.Sprintf("more-%d", n), "a: one")
	}
	c := compared(t, files("app/web.yaml", config("web", "a: one")+policy), files("app/web.yaml", head))
	if len(c.Risks) != 1 || c.Risks[0].Reason != comparison.RiskBuild || !strings.Contains(c.Risks[0].Message, "more than 1002 objects") || len(c.Changes) > 0 {
		t.Errorf("%d changes, risks: %+v", len(c.Changes), c.Risks)
	}
}

func TestDigest(t *testing.T) {
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web"}}
	first := read(t, hub(t, web)).Digest
	h := hub(t, web)
	change := func(obj client.Object, by func()) string {
		t.Helper()
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		by()
		if err := h.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		return read(t, h).Digest
	}
	eu := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "app"}}
	same := map[string]string{
		"another control plane of the same": read(t, h).Digest,
		"the room of a cluster": change(eu, func() {
			eu.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{}
			eu.Status.KubernetesVersion = "v1.2"
		}),
		"what a Kustomization reports": change(ks, func() { ks.Status.LastAppliedRevision = "x" }),
	}
	want := map[string]string{}
	for name := range same {
		want[name] = first
	}
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("digests that are the same (-want +got):\n%s", diff)
	}
	label := change(eu, func() { eu.Labels["region"] = "us" })
	ready := change(eu, func() { eu.Status.Conditions[0].Status = metav1.ConditionFalse })
	if label == first || ready == label {
		t.Errorf("digests %s, %s, %s", first, label, ready)
	}
}
