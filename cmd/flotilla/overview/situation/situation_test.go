package situation_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)

// objects returns the objects in a file of manifests.
func objects(t *testing.T, name string) []runtime.Object {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.New()).UniversalDeserializer()
	var out []runtime.Object
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		obj, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		out = append(out, obj)
	}
	return out
}

// survey adds objects to a Survey; the annotation of a Cluster has when it last reported.
func survey(t *testing.T, namespace string, all []runtime.Object) situation.Fleet {
	t.Helper()
	s := situation.NewSurvey(now, namespace)
	for _, obj := range all {
		switch o := obj.(type) {
		case *sourcev1.GitRepository:
			s.Source(o)
		case *kustomizev1.Kustomization:
			s.Kustomization(o)
		case *clusterv1alpha1.Cluster:
			heard, _ := time.Parse(time.RFC3339, o.Annotations["heard"])
			s.Cluster(o, heard)
		case policyv1alpha1.Policy:
			s.Policy(o)
		case workv1alpha2.Binding:
			propagation.ClaimOf(carrying("web", 1)).Set(o)
			s.Binding(o, nil)
		default:
			t.Fatalf("a %T", obj)
		}
	}
	return s.Fleet()
}

// golden compares text with a golden file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func text(t *testing.T, f situation.Fleet, wide bool) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f.Text(&out, situation.TextOptions{Wide: wide, Now: now}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestText(t *testing.T) {
	for _, name := range []string{"ready", "trouble"} {
		t.Run(name, func(t *testing.T) {
			f := survey(t, "", objects(t, name))
			if wantReady := name == "ready"; f.Ready != wantReady {
				t.Errorf("ready = %v, want %v", f.Ready, wantReady)
			}
			golden(t, name+".txt", text(t, f, false))
			golden(t, name+"-wide.txt", text(t, f, true))
			content, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", append(content, '\n'))
			for _, secret := range []string{"user:", "\x1b"} {
				if bytes.Contains(text(t, f, true), []byte(secret)) {
					t.Errorf("the text has %q in it", secret)
				}
			}
		})
	}
}

// A control plane that was set back is one problem, however many clusters report it.
func TestAControlPlaneThatWasSetBack(t *testing.T) {
	s := situation.NewSurvey(now, "")
	for _, name := range []string{"east", "west"} {
		c := &clusterv1alpha1.Cluster{}
		c.Name = name
		c.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionTrue}, {Type: clusterv1alpha1.ClusterConditionHeld, Status: metav1.ConditionTrue, Message: "set back"},
		}
		s.Cluster(c, time.Time{})
	}
	f := s.Fleet()
	want := []situation.Problem{{State: situation.Failed, Kind: "ControlPlane", Name: "hub", Message: "set back", Next: "flotilla resume hub --dry-run"}}
	if diff := cmp.Diff(want, f.Problems); diff != "" || f.Ready {
		t.Errorf("ready: %v (-want +got):\n%s", f.Ready, diff)
	}
}

func TestOneNamespace(t *testing.T) {
	cases := map[string]struct {
		namespace string
		want      situation.Count
	}{
		"that of the Kustomization has its templates, wherever they are": {"default", situation.Count{Total: 1, Ready: 1}},
		"that of the templates has them, whoever applied them":           {"shop", situation.Count{Total: 1, Ready: 1}},
		"another has none": {"other", situation.Count{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var in []runtime.Object
			for _, obj := range objects(t, "ready") {
				// as a server does for the namespace
				if o, ok := obj.(metav1.Object); ok && (o.GetNamespace() == "" || o.GetNamespace() == tc.namespace || o.GetNamespace() == "shop") {
					in = append(in, obj)
				}
			}
			if diff := cmp.Diff(tc.want, survey(t, tc.namespace, in).Templates); diff != "" {
				t.Errorf("templates (-want +got):\n%s", diff)
			}
		})
	}
}

// One screen has limited room: rows that are ready are left out before others.
func TestManyClusters(t *testing.T) {
	s := situation.NewSurvey(now, "")
	for i := range 100 {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("site-%03d", i)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
		state := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "fine"}
		if i%8 == 7 {
			state = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "cluster is not reachable"}
		}
		c.Status.Conditions = []metav1.Condition{state}
		s.Cluster(c, time.Time{})
	}
	golden(t, "many.txt", text(t, s.Fleet(), false))
}

// TestWhoMayReadOneNamespace: users without rights in all namespaces get the flag for one.
func TestWhoMayReadOneNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		unread    []string
		want      string
	}{
		"all namespaces":                   {"", []string{"Works", "Kustomizations"}, "You may not read Kustomizations: nothing is said of them.\nYou may not read Works: nothing is said of them.\n-n NAMESPACE shows one namespace.\n"},
		"of what is in none nothing helps": {"", []string{"Works", situation.Clusters}, "You may not read Works: nothing is said of them.\nYou may not read clusters: nothing is said of them.\n"},
		"one namespace":                    {"shop", []string{"Kustomizations"}, "You may not read Kustomizations: nothing is said of them.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, tc.namespace)
			for _, what := range tc.unread {
				s.Unread(what)
			}
			all := string(text(t, s.Fleet(), false))
			if diff := cmp.Diff(tc.want, all[strings.Index(all, "You may not"):]); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

// TestATenantsGate: whether a namespace is ready only depends on what may be read in it.
func TestATenantsGate(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		unread    []string
		ready     bool
		want      string
	}{
		"what is of no namespace does not count": {"shop", []string{"ClusterPropagationPolicies", "ClusterResourceBindings", situation.Clusters}, true,
			"What you may read is ready: clusters not read, sources 0/0, Kustomizations 0/0, templates 0/0.\nYou may not read clusters: nothing is said of them.\n"},
		"what is in the namespace does": {"shop", []string{situation.Clusters, "ResourceBindings", "GitRepositories", "Kustomizations"}, false,
			"What you may read is ready: clusters not read, sources not read, Kustomizations not read, templates not read.\n"},
		"and so does whether there is one": {"shop", []string{situation.Namespaces}, false, "What you may read is ready: "},
		"all of them":                      {"", []string{"ClusterResourceBindings"}, false, "What you may read is ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, tc.namespace)
			for _, what := range tc.unread {
				s.Unread(what)
			}
			f := s.Fleet()
			if f.Ready != tc.ready {
				t.Errorf("ready: %t, want %t", f.Ready, tc.ready)
			}
			if output := string(text(t, f, false)); !strings.HasPrefix(output, tc.want) {
				t.Errorf("it says\n%s\nwant\n%s", output, tc.want)
			}
		})
	}
}

// TestTemplatesByHearsay: without the right to read clusters the count is marked as what they
// last reported, because one of them may not answer any more.
func TestTemplatesByHearsay(t *testing.T) {
	for name, tc := range map[string]struct {
		unread string
		want   string
	}{
		"who may read the clusters": {"Kustomizations", "What you may read is ready: clusters 0/0, sources 0/0, Kustomizations not read, templates 1/1.\n"},
		"who may not":               {situation.Clusters, "What you may read is ready: clusters not read, sources 0/0, Kustomizations 0/0, templates 1/1, as the clusters reported last.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "shop")
			s.Unread(tc.unread)
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
			propagation.ClaimOf(carrying("web", 1)).Set(b)
			s.Binding(b, nil)
			output, _, _ := strings.Cut(string(text(t, s.Fleet(), false)), "You may not")
			if diff := cmp.Diff(tc.want, output); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothing(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Unread(situation.Clusters)
	f := s.Fleet()
	if f.Ready {
		t.Error("a fleet that nobody may read is ready")
	}
	const want = "What you may read is ready: clusters not read, sources 0/0, Kustomizations 0/0, templates 0/0.\nYou may not read clusters: nothing is said of them.\n"
	if diff := cmp.Diff(want, string(text(t, f, false))); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
