package planning

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/taints"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
)

// placed is a fleet in which the objects of testdata/whatif are placed, each cluster with room for four pods more.
func placed(t *testing.T, rules failover.Rules) func(*snapshot.Snapshot) {
	t.Helper()
	objects, err := (&reading{namespace: "shop"}).objects(t.Context(), side{paths: []string{"testdata/whatif"}})
	if err != nil {
		t.Fatal(err)
	}
	return func(s *snapshot.Snapshot) {
		for i := range s.Clusters {
			c := &s.Clusters[i]
			c.Spec.Taints, c.Labels = nil, map[string]string{"tier": "gold"}
			c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady", LastTransitionTime: metav1.NewTime(time.Unix(0, 0))}}
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("100")}}
		}
		s.Policies.Taints = []policyv1alpha1.ClusterTaintPolicy{*taints.Lost()}
		in, err := forecast.With(s.Fleet(interpreter.Native(), time.Unix(3600, 0)), objects, false)
		if err != nil {
			t.Fatal(err)
		}
		in.Scheduling.Failover = rules
		for _, p := range plan.Fleet(in) {
			if p.Err != nil || p.Binding == nil {
				t.Fatalf("%s: %v", p.Resource.Name, p.Err)
			}
			s.Bindings.Namespaced = append(s.Bindings.Namespaced, *p.Binding.(*workv1alpha2.ResourceBinding))
		}
		for _, o := range in.Templates {
			s.Templates = append(s.Templates, o.Object)
		}
		for _, p := range in.Policies {
			s.Policies.Propagation = append(s.Policies.Propagation, *p.(*policyv1alpha1.PropagationPolicy))
		}
	}
}

// failoverOn is failover with the defaults of a control plane.
var failoverOn = failover.Rules{Taints: true, Tolerance: 5 * time.Minute}

// TestWhatIf: what is printed of what happens to clusters, without a change of files.
func TestWhatIf(t *testing.T) {
	on, off := exported(t, placed(t, failoverOn)), exported(t, placed(t, failover.Rules{}))
	for name, tc := range map[string]struct {
		fleet string
		args  []string
	}{
		"down":          {on, []string{"us-1:down"}},
		"down-off":      {off, []string{"us-1:down"}},
		"down-markdown": {on, []string{"us-1:down", "-o", "markdown"}},
		"down-json":     {on, []string{"us-1:down", "-o", "json"}},
		"down-two":      {on, []string{"us-1:down,eu-1:down"}},
		"drain":         {off, []string{"eu-1:drain"}},
		"remove":        {on, []string{"us-1:remove", "-C", "us-1"}},
		"join":          {on, []string{"add:testdata/us-2.yaml"}},
		"label":         {on, []string{"eu-1:label=tier=iron", "--what-if", "add:testdata/us-2.yaml", "--what-if", "us-2:capacity=cpu=9"}},
		"nothing":       {on, []string{"eu-1:cordon"}},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, "whatif-"+name+".golden", call(t, "", append([]string{"plan", "--exit-code", "--fleet", tc.fleet, "--what-if"}, tc.args...)...).String())
		})
	}
}

// TestWhatIfWithAChange: the files before are those of the fleet as it is, and those after of the fleet as it would be.
func TestWhatIfWithAChange(t *testing.T) {
	file := exported(t, placed(t, failoverOn))
	content, err := os.ReadFile("testdata/whatif/all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	after := t.TempDir()
	write(t, filepath.Join(after, "all.yaml"), strings.Replace(string(content), "clusterNames: [us-1]", "clusterNames: [us-1, us-2]", 1))
	shifts := func(args ...string) map[string]string {
		got := call(t, "", append([]string{"plan", after, "--base", "testdata/whatif", "--fleet", file, "-o", "json"}, args...)...)
		var c comparison.Comparison
		if err := json.Unmarshal([]byte(got.Out), &c); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		out := map[string]string{}
		for _, p := range c.Placements {
			for _, s := range p.Shifts {
				was, is := "none", "none"
				if s.Before != nil {
					was = resource.NewQuantity(int64(*s.Before), resource.DecimalSI).String()
				}
				if s.After != nil {
					is = resource.NewQuantity(int64(*s.After), resource.DecimalSI).String()
				}
				out[p.Name] = strings.TrimSpace(out[p.Name] + " " + s.Cluster + ":" + was + "→" + is)
			}
		}
		for _, r := range c.Risks {
			out[r.Reason] = r.Message
		}
		return out
	}
	if diff := cmp.Diff(map[string]string{"UnknownCluster": "PropagationPolicy shop/db: clusterNames names us-2, which does not exist"}, shifts()); diff != "" {
		t.Errorf("the change alone (-want +got):\n%s", diff)
	}
	want := map[string]string{"db": "us-1:1→none us-2:none→1", "settings": "us-1:0→none us-2:none→0", "web": "eu-1:2→3 eu-2:2→3 us-1:2→none"}
	if diff := cmp.Diff(want, shifts("--what-if", "add:testdata/us-2.yaml,us-1:down")); diff != "" {
		t.Errorf("the change, and what may happen (-want +got):\n%s", diff)
	}
}

// TestWhatIfOfASource: a policy of a Kustomization may name a cluster that joins.
func TestWhatIfOfASource(t *testing.T) {
	ks := func(s *snapshot.Snapshot) {
		of := kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "shop"}}
		of.Spec.Prune, of.Spec.Path = true, "./shop"
		of.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
		s.Kustomizations = append(s.Kustomizations, of)
	}
	const objects = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: maps, namespace: shop}\n" +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [CLUSTERS]}}}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
	sides := map[string]string{"eu-1, eu-2": t.TempDir(), "eu-1, us-2": t.TempDir()}
	for clusters, dir := range sides {
		if err := os.Mkdir(filepath.Join(dir, "shop"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "shop", "all.yaml"), strings.Replace(objects, "CLUSTERS", clusters, 1))
	}
	args := []string{"plan", sides["eu-1, us-2"], "--base", sides["eu-1, eu-2"], "--fleet", exported(t, ks), "--source", "fleet.flux"}
	alone := call(t, "", args...)
	if !strings.Contains(alone.Out, "UnknownCluster  PropagationPolicy shop/maps: clusterNames names us-2") {
		t.Errorf("the change alone is no risk: %s", alone)
	}
	got := call(t, "", append(args, "--what-if", "add:testdata/us-2.yaml")...)
	golden(t, "whatif-source.golden", got.String())
}

// TestWhatIfIsRefused: each in one line, with exit code 2.
func TestWhatIfIsRefused(t *testing.T) {
	file := exported(t, placed(t, failoverOn), func(s *snapshot.Snapshot) { s.Clusters = append(s.Clusters, cluster("frankfurt")) })
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	write(t, broken, "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: us-3}\nspec: {sync: Push}\n")
	named := filepath.Join(t.TempDir(), "named.yaml")
	write(t, named, "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: US_3}\n")
	there := filepath.Join(t.TempDir(), "there.yaml")
	write(t, there, "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: eu-1}\n")
	cases := map[string]struct {
		args []string
		want string
	}{
		"a cluster that there is not":     {[]string{"frankfrut:down"}, "there is no cluster frankfrut (did you mean frankfurt?)"},
		"a word that is none":             {[]string{"eu-1:explode"}, `--what-if "eu-1:explode" is none of CLUSTER:down, `},
		"a file that is not there":        {[]string{"add:nowhere.yaml"}, "nowhere.yaml: no such file or directory"},
		"a file that is a folder":         {[]string{"add:testdata"}, "testdata is no file with the manifest of a Cluster"},
		"a file with something else":      {[]string{"add:testdata/whatif/all.yaml"}, "testdata/whatif/all.yaml is no manifest of a Cluster"},
		"a field that there is not":       {[]string{"add:" + broken}, "unknown field"},
		"a name that is none":             {[]string{"add:" + named}, "metadata.name"},
		"a cluster that is there already": {[]string{"add:" + there}, "names the cluster eu-1, which is in the fleet already"},
		"a source without files":          {[]string{"eu-1:down", "--source", "fleet"}, "the files of the change are missing"},
		"files before, and none after":    {[]string{"eu-1:down", "--base", "testdata/whatif"}, "the files of the change are missing"},
		"files after, and none before":    {[]string{"eu-1:down", "testdata/whatif"}, "--fleet needs --base"},
		"only what is about no cluster":   {[]string{"eu-1:down", "-C", "mars"}, "there is no cluster mars in the fleet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, "", append([]string{"plan", "--fleet", file, "--what-if"}, tc.args...)...)
			if got.Code != 2 || !strings.Contains(got.Err, tc.want) || strings.Count(got.Err, "\n") > 1 {
				t.Errorf("code %d, want 2, with %q in\n%s", got.Code, tc.want, got.Err)
			}
		})
	}
}

// TestWhatIfOfAnOlderExport: a file without ClusterTaintPolicies is taken for that of a new control plane, and says so.
func TestWhatIfOfAnOlderExport(t *testing.T) {
	file := exported(t, placed(t, failoverOn), func(s *snapshot.Snapshot) { s.Policies.Taints = nil })
	got := call(t, "", "plan", "--fleet", file, "--what-if", "us-1:down")
	if !strings.Contains(got.Out, "note: the ClusterTaintPolicies of the fleet are not known: ") || !strings.Contains(got.Out, "lost, with 2 replicas") {
		t.Errorf("%s", got)
	}
	none := call(t, "", "plan", "--what-if", "us-1:down", "--fleet",
		exported(t, placed(t, failoverOn), func(s *snapshot.Snapshot) { s.Policies.Taints = []policyv1alpha1.ClusterTaintPolicy{} }))
	if !strings.Contains(none.Out, "note: no ClusterTaintPolicy gives us-1 a taint") || strings.Contains(none.Out, "PLACEMENT") {
		t.Errorf("without policies: %s", none)
	}
}

// TestEventsAreCompleted: what may happen to a cluster follows on its name, also of the second event of a word.
func TestEventsAreCompleted(t *testing.T) {
	for word, want := range map[string]string{
		"eu-1:d":           "eu-1:down\neu-1:drain\n:6\n",
		"eu-1:down,us-1:r": "eu-1:down,us-1:remove\n:6\n",
		"ad":               "add:\n:6\n",
		"add:test":         ":0\n",
	} {
		if got := call(t, "", "__complete", "plan", "--what-if", word); got.Out != want {
			t.Errorf("%s: %q, want %q", word, got.Out, want)
		}
	}
}
