package comparison_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// served are the kinds that every cluster of a test serves.
var served = []clusterv1alpha1.APIEnablement{
	{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "Namespace"}, {Kind: "PersistentVolumeClaim"}, {Kind: "Pod"}}},
	{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}, {Kind: "StatefulSet"}, {Kind: "DaemonSet"}}},
	{GroupVersion: "batch/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Job"}, {Kind: "CronJob"}}},
	{GroupVersion: "apiextensions.k8s.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "CustomResourceDefinition"}}},
	{GroupVersion: "y.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Boat"}}},
}

// fleetOf reads documents into a fleet. Lines such as "clusters: east west" name its clusters.
func fleetOf(t *testing.T, documents ...string) plan.FleetInput {
	t.Helper()
	in := plan.FleetInput{Interpreter: interpreter.Native(), Skip: propagation.DefaultSkipRules(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Whole: true}
	for document := range strings.SplitSeq(strings.Join(documents, "\n---\n"), "\n---\n") {
		if names, is := strings.CutPrefix(strings.TrimSpace(document), "clusters: "); is {
			for _, name := range strings.Fields(names) {
				c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
				c.Status.APIEnablements = served
				in.Clusters = append(in.Clusters, c)
			}
			continue
		}
		if strings.TrimSpace(document) != "" {
			add(t, &in, document)
		}
	}
	return in
}

func add(t *testing.T, in *plan.FleetInput, document string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	data, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := obj.UnmarshalJSON(data); err != nil { // numbers as they are in templates
		t.Fatal(err)
	}
	var into any
	switch obj.GetKind() {
	case "PropagationPolicy":
		p := &policyv1alpha1.PropagationPolicy{}
		in.Policies, into = append(in.Policies, p), p
	case "ClusterPropagationPolicy":
		p := &policyv1alpha1.ClusterPropagationPolicy{}
		in.Policies, into = append(in.Policies, p), p
	case "OverridePolicy":
		o := &policyv1alpha1.OverridePolicy{}
		in.Overrides, into = append(in.Overrides, o), o
	case "ClusterOverridePolicy":
		o := &policyv1alpha1.ClusterOverridePolicy{}
		in.Overrides, into = append(in.Overrides, o), o
	case "FederatedResourceQuota":
		q := &policyv1alpha1.FederatedResourceQuota{}
		in.Quotas, into = append(in.Quotas, q), q
	default:
		in.Templates = append(in.Templates, obj)
		return
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
}

// compared returns what a change of documents does.
func compared(t *testing.T, base, head string, change ...func(*comparison.Input)) comparison.Comparison {
	t.Helper()
	in := comparison.Input{Base: comparison.Plan(fleetOf(t, base)), Salt: []byte("salt")}
	in.Head = comparison.Plan(in.Base.Then(fleetOf(t, head)))
	for _, f := range change {
		f(&in)
	}
	return comparison.Compare(in)
}

// told is a Comparison in lines, all of it but for the manifests.
func told(c comparison.Comparison) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	for _, r := range c.Risks {
		say("! %s: %s%s", r.Reason, r.Message, in(r.Clusters))
	}
	for _, p := range c.Placements {
		line := fmt.Sprintf("place %s:", p.Object)
		for _, s := range p.Shifts {
			line += fmt.Sprintf(" %s %s→%s", s.Cluster, number(s.Before), number(s.After))
		}
		say("%s (%s)", line, p.Why)
	}
	for _, change := range c.Changes {
		flags := ""
		if change.Unknown {
			flags += " unknown"
		}
		if change.Suspended {
			flags += " suspended"
		}
		say("%s %s%s%s", change.Action, change.Object, in(change.Clusters), flags)
		for _, f := range change.Fields {
			say("  %s: %v → %v", f.Path, f.Old, f.New)
		}
	}
	for _, r := range c.Restarts {
		pods := "?"
		if r.Pods != nil {
			pods = fmt.Sprint(*r.Pods)
		}
		say("pods of %s %s: %s%s (%s)", r.Object, r.Effect, pods, in(r.Clusters), r.Why)
	}
	for _, h := range c.Held {
		say("held %s%s: %s", h.Object, in(h.Clusters), h.Why)
	}
	return strings.TrimSpace(out.String())
}

func in(clusters []string) string {
	if len(clusters) == 0 {
		return ""
	}
	return " in " + strings.Join(clusters, ",")
}

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// Documents of the cases.
const (
	fleet3  = "clusters: east north west\n---\n"
	web     = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {replicas: 2, template: {spec: {containers: [{name: web, image: nginx:1}]}}}}\n---\n"
	web2    = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {replicas: 2, template: {spec: {containers: [{name: web, image: nginx:2}]}}}}\n---\n"
	config  = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}, data: {size: large}}\n---\n"
	config2 = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}, data: {size: small}}\n---\n"
	allMaps = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: maps}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}}\n---\n"
	webs    = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: webs}, spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}}\n---\n"
)

// policyOn is webs for some clusters.
func policyOn(clusters string) string {
	return strings.Replace(webs, "placement: {}", "placement: {clusterAffinity: {clusterNames: ["+clusters+"]}}", 1)
}

// by is a document with the labels of a Kustomization.
func by(kustomization, document string) string {
	return strings.Replace(document, "metadata: {", "metadata: {labels: {kustomize.toolkit.fluxcd.io/name: "+kustomization+", kustomize.toolkit.fluxcd.io/namespace: flux}, ", 1)
}

func TestCompare(t *testing.T) {
	cases := map[string]struct{ base, head, want string }{
		"a field of a ConfigMap is grouped over clusters": {
			fleet3 + allMaps + config, fleet3 + allMaps + config2,
			`updated ConfigMap shop/settings in east,north,west
  /data/size: large → small`,
		},
		"an image restarts pods": {
			fleet3 + webs + web, fleet3 + webs + web2,
			`updated Deployment shop/web in east,north,west
  /spec/template/spec/containers/0/image: nginx:1 → nginx:2
pods of Deployment shop/web restart: 6 in east,north,west (its pod template changes: spec.containers.0.image)`,
		},
		"replicas restart none": {
			fleet3 + policyOn("east") + web, fleet3 + policyOn("east") + strings.Replace(web, "replicas: 2", "replicas: 3", 1),
			`place Deployment shop/web: east 2→3 (replicas changed)
updated Deployment shop/web in east
  /spec/replicas: 2 → 3
pods of Deployment shop/web stay: 2 in east (its pod template stays the same)`,
		},
		"a template that goes is deleted everywhere, and its policy is idle": {
			fleet3 + allMaps + config, fleet3 + allMaps,
			`! IdlePolicy: PropagationPolicy shop/maps carries nothing any more: it carried 1 template
place ConfigMap shop/settings: east 0→- north 0→- west 0→- (its template is deleted)
deleted ConfigMap shop/settings in east,north,west`,
		},
		"a template that comes is created": {
			fleet3 + webs + web, fleet3 + webs + web + allMaps + config,
			`place ConfigMap shop/settings: east -→0 north -→0 west -→0 (new: PropagationPolicy shop/maps, selected all of its kind)
created ConfigMap shop/settings in east,north,west`,
		},
		"a policy that shrinks takes from clusters": {
			fleet3 + policyOn("east, west") + web, fleet3 + policyOn("west") + web,
			`! OneCluster: Deployment shop/web ran in 2 clusters, and will run in one in west
place Deployment shop/web: east 2→- (placement changed)
deleted Deployment shop/web in east`,
		},
		"a policy that goes leaves what runs": {
			fleet3 + webs + web, fleet3 + web,
			`held Deployment shop/web in east,north,west: no policy carries it any more (no policy selects it): what runs, runs on`,
		},
		"an object that another Kustomization applies now has moved": {
			fleet3 + allMaps + by("apps", config), fleet3 + allMaps + by("web", config),
			`moved ConfigMap shop/settings in east,north,west
  /metadata/labels/kustomize.toolkit.fluxcd.io~1name: apps → web`,
		},
		"an object that moves and changes is updated": {
			fleet3 + allMaps + by("apps", config), fleet3 + allMaps + by("web", config2),
			`updated ConfigMap shop/settings in east,north,west
  /data/size: large → small
  /metadata/labels/kustomize.toolkit.fluxcd.io~1name: apps → web`,
		},
		"a policy that preserves what it carries leaves it": {
			fleet3 + strings.Replace(allMaps, "placement: {}", "preserveResourcesOnDeletion: true, placement: {}", 1) + config, fleet3,
			`place ConfigMap shop/settings: east 0→- north 0→- west 0→- (its template is deleted)
left ConfigMap shop/settings in east,north,west`,
		},
		"what is suspended in a cluster is told apart": {
			fleet3 + strings.Replace(allMaps, "placement: {}", "suspension: {dispatchingOnClusters: {clusterNames: [north]}}, placement: {}", 1) + config,
			fleet3 + strings.Replace(allMaps, "placement: {}", "suspension: {dispatchingOnClusters: {clusterNames: [north]}}, placement: {}", 1) + config2,
			`updated ConfigMap shop/settings in east,west
  /data/size: large → small
updated ConfigMap shop/settings in north suspended
  /data/size: large → small`,
		},
		"a cluster that leaves the fleet": {
			fleet3 + allMaps + config, "clusters: east north\n---\n" + allMaps + config,
			`place ConfigMap shop/settings: west 0→- (follows the clusters that fit)
deleted ConfigMap shop/settings in west`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(compared(t, tc.base, tc.head))); diff != "" {
				t.Errorf("comparison (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPods: what becomes of pods, kind by kind.
func TestPods(t *testing.T) {
	carry := func(apiVersion, kind string) string {
		return fmt.Sprintf("clusters: east\n---\n{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: all}, spec: {resourceSelectors: [{apiVersion: %s, kind: %s}], placement: {}}}\n---\n", apiVersion, kind)
	}
	const pod, pod2 = "{spec: {containers: [{name: web, image: nginx:1}]}}", "{spec: {containers: [{name: web, image: nginx:2}]}}"
	cases := map[string]struct{ apiVersion, kind, base, head, want string }{
		"a Deployment that is paused":            {"apps/v1", "Deployment", "{replicas: 2, paused: true, template: " + pod + "}", "{replicas: 2, paused: true, template: " + pod2 + "}", "stay: its pod template changes, and it is paused"},
		"a Deployment's strategy":                {"apps/v1", "Deployment", "{replicas: 2, template: " + pod + "}", "{replicas: 2, strategy: {type: Recreate}, template: " + pod + "}", "stay: its pod template stays the same"},
		"a StatefulSet's image":                  {"apps/v1", "StatefulSet", "{replicas: 2, template: " + pod + "}", "{replicas: 2, template: " + pod2 + "}", "restart: its pod template changes: spec.containers.0.image"},
		"a DaemonSet that waits for deletions":   {"apps/v1", "DaemonSet", "{updateStrategy: {type: OnDelete}, template: " + pod + "}", "{updateStrategy: {type: OnDelete}, template: " + pod2 + "}", "stay: its pod template changes, and it replaces pods only as they are deleted"},
		"a Job's image":                          {"batch/v1", "Job", "{template: " + pod + "}", "{template: " + pod2 + "}", "refused: the pod template of a Job cannot be changed: give the Job another name"},
		"a CronJob's image":                      {"batch/v1", "CronJob", "{jobTemplate: {spec: {template: " + pod + "}}}", "{jobTemplate: {spec: {template: " + pod2 + "}}}", "stay: its next run has the new pod template"},
		"a Pod's image":                          {"v1", "Pod", "{containers: [{name: web, image: nginx:1}]}", "{containers: [{name: web, image: nginx:2}]}", "restart: a container with another image is restarted"},
		"a Pod's command":                        {"v1", "Pod", "{containers: [{name: web, command: [a]}]}", "{containers: [{name: web, command: [b]}]}", "refused: spec.containers.0.command.0 of a Pod cannot be changed: give the Pod another name"},
		"what only holds data has no pods":       {"v1", "ConfigMap", "{a: 1}", "{a: 2}", ""},
		"a kind about which nothing is known":    {"y.io/v1", "Boat", "{crew: 1}", "{crew: 2}", ""},
		"a Deployment's labels leave pods alone": {"apps/v1", "Deployment", "{replicas: 2, minReadySeconds: 1, template: " + pod + "}", "{replicas: 2, minReadySeconds: 2, template: " + pod + "}", "stay: its pod template stays the same"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			document := func(spec string) string {
				return carry(tc.apiVersion, tc.kind) + fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {namespace: shop, name: a}, spec: %s}", tc.apiVersion, tc.kind, spec)
			}
			c := compared(t, document(tc.base), document(tc.head))
			got := ""
			for _, r := range c.Restarts {
				got += string(r.Effect) + ": " + r.Why
			}
			if got != tc.want || len(c.Changes) != 1 {
				t.Errorf("got %q, want %q\n%s", got, tc.want, told(c))
			}
		})
	}
}
