package comparison_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// TestRisks: each risk, and what is close to it and none.
func TestRisks(t *testing.T) {
	override := func(name, rule string) string {
		return "{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: shop, name: " + name + "}, spec: {overrideRules: [" + rule + "]}}\n---\n"
	}
	tag := func(clusters, tag string) string {
		return override("tag", "{targetCluster: {clusterNames: ["+clusters+"]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: '"+tag+"'}]}}")
	}
	cluster := func(name, kind, apiVersion, more string) string {
		return "{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: " + name + "}, spec: {" + more + "resourceSelectors: [{apiVersion: " + apiVersion + ", kind: " + kind + "}], placement: {}}}\n---\n"
	}
	const (
		namespace  = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n"
		definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boats.y.io}, spec: {group: y.io, names: {kind: Boat, plural: boats}}}\n---\n"
		boat       = "{apiVersion: y.io/v1, kind: Boat, metadata: {namespace: shop, name: a}}\n---\n"
		claim      = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: data}}\n---\n"
		quota      = "{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {namespace: shop, name: team}, spec: {overall: {cpu: 3}}}\n---\n"
		asks       = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {replicas: 1, template: {spec: {containers: [{name: web, image: nginx:1, resources: {requests: {cpu: 1}}}]}}}}\n---\n"
	)
	cases := map[string]struct{ base, head, want string }{
		"nothing": {fleet3 + webs + web, fleet3 + webs + web2, ""},
		"a Namespace that goes": {
			fleet3 + webs + web + namespace, fleet3 + webs + web,
			"DeletesNamespace: Namespace shop is deleted with all that is in it, 1 template among them",
		},
		"a definition that goes": {
			fleet3 + definition + boat, fleet3,
			"DeletesDefinition: CustomResourceDefinition boats.y.io is deleted with all objects of its kind, 1 template among them",
		},
		"a volume claim that goes": {
			fleet3 + cluster("claims", "PersistentVolumeClaim", "v1", "") + claim, fleet3 + cluster("claims", "PersistentVolumeClaim", "v1", ""),
			"DeletesVolume: PersistentVolumeClaim shop/data is deleted in 3 clusters, with its data in east,north,west\n" +
				"IdlePolicy: ClusterPropagationPolicy claims carries nothing any more: it carried 1 template",
		},
		"everything on one cluster": {
			fleet3 + policyOn("east, north, west") + web, fleet3 + policyOn("north") + web,
			"OneCluster: Deployment shop/web ran in 3 clusters, and will run in one in north",
		},
		"no cluster fits any more": {
			fleet3 + policyOn("east") + web, fleet3 + policyOn("mars") + web,
			"NotPlaced: Deployment shop/web: 0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint.\nUnknownCluster: PropagationPolicy shop/webs: clusterNames names mars, which does not exist",
		},
		"a cluster that nobody has": {
			fleet3 + policyOn("east") + web, fleet3 + policyOn("east, wst") + web,
			"UnknownCluster: PropagationPolicy shop/webs: clusterNames names wst, which does not exist (did you mean west?)",
		},
		"one that nobody had before": {fleet3 + policyOn("east, wst") + web, fleet3 + policyOn("west, wst") + web, ""},
		"an override that names one": {
			fleet3 + webs + web, fleet3 + webs + web + tag("east, norht", "1"),
			"UnknownCluster: OverridePolicy shop/tag: clusterNames names norht, which does not exist (did you mean north?)\n" +
				"IdleOverride: OverridePolicy shop/tag changes nothing: what it sets is there without it",
		},
		"a policy that selects nothing": {
			fleet3 + webs + web, fleet3 + webs + web + allMaps,
			"IdlePolicy: PropagationPolicy shop/maps carries nothing: it selects no template, or others carry those that it selects",
		},
		"a policy that selected nothing before": {fleet3 + webs + web + allMaps, fleet3 + webs + web2 + allMaps, ""},
		"a policy that takes a template from another one": {
			fleet3 + webs + web,
			fleet3 + webs + web + strings.Replace(strings.Replace(webs, "name: webs", "name: mine", 1), "placement: {}", "priority: 5, preemption: Always, placement: {}", 1),
			"TakesOver: PropagationPolicy shop/mine takes 1 template from PropagationPolicy shop/webs: Deployment shop/web\n" +
				"IdlePolicy: PropagationPolicy shop/webs carries nothing any more: it carried 1 template",
		},
		"a policy that follows on one that goes": {fleet3 + webs + web, fleet3 + web + strings.Replace(webs, "name: webs", "name: mine", 1), ""},
		"a policy that carries what others own": {
			fleet3 + by("theirs", web), fleet3 + by("theirs", web) + by("mine", cluster("all", "Deployment", "apps/v1", "")),
			"TakesOver: ClusterPropagationPolicy all carries 1 template, which others own and this change does not touch: Deployment shop/web",
		},
		"a policy that carries what its own Kustomization has": {fleet3 + by("mine", web), fleet3 + by("mine", web) + by("mine", cluster("all", "Deployment", "apps/v1", "")), ""},
		"an override that reaches nothing": {
			fleet3 + policyOn("east") + web, fleet3 + policyOn("east") + web + tag("west", "2"),
			"IdleOverride: OverridePolicy shop/tag changes nothing: no template that it selects goes to a cluster that it means",
		},
		"an override that does not fit any more": {
			fleet3 + policyOn("east") + web + override("cpu", "{overriders: {plaintext: [{path: /spec/paused, operator: add, value: false}]}}"),
			fleet3 + policyOn("east") + web + override("cpu", "{overriders: {plaintext: [{path: /spec/gone, operator: remove}]}}"),
			"OverrideFails: Deployment shop/web cannot be made, and stays as it is: override policy shop/cpu: overrideRules[0].plaintext[0] at /spec/gone: nothing is there: narrow the rule to what has it, or add it first in east",
		},
		"an image that differs in one cluster": {
			fleet3 + webs + web, fleet3 + webs + web + tag("west", "2"),
			"ImagesDiffer: clusters run different versions of container web of Deployment shop/web: nginx:1 in 2 clusters, nginx:2 in west",
		},
		"an image that differed before": {fleet3 + webs + web + tag("west", "2"), fleet3 + webs + web + tag("west", "3"), ""},
		"another registry": {
			fleet3 + webs + web, fleet3 + webs + web + override("tag", "{targetCluster: {clusterNames: [west]}, overriders: {imageOverrider: [{component: Registry, operator: replace, value: r.example.com}]}}"), "",
		},
		"a quota that will not do": {
			fleet3 + quota + policyOn("east, west") + asks, fleet3 + quota + policyOn("east, west") + strings.Replace(asks, "replicas: 1", "replicas: 2", 1),
			"QuotaExceeded: FederatedResourceQuota shop/team is exceeded: cpu: 2 of 3 are used, 2 more are asked for",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := compared(t, tc.base, tc.head)
			var lines []string
			for _, r := range c.Risks {
				lines = append(lines, fmt.Sprintf("%s: %s%s", r.Reason, r.Message, in(r.Clusters)))
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("risks (-want +got):\n%s\n%s", diff, told(c))
			}
		})
	}
}

// TestBrake: the brake is asked about each Kustomization that loses something, with policies, and without what moves.
func TestBrake(t *testing.T) {
	base := fleet3 + by("apps", allMaps) + by("apps", config) + by("apps", web) + by("other", webs)
	head := fleet3 + by("apps", config) + by("other", webs) + by("other", web)
	var asked []comparison.Removal
	c := compared(t, base, head, func(in *comparison.Input) {
		in.Brake = func(r comparison.Removal) string {
			asked = append(asked, r)
			return "too much"
		}
	})
	var got []string
	for _, r := range asked {
		got = append(got, fmt.Sprintf("%s owned %v, lost %v", r.Kustomization, r.Owned, r.Gone))
	}
	want := []string{"flux/apps owned [ConfigMap shop/settings Deployment shop/web PropagationPolicy shop/maps], lost [PropagationPolicy shop/maps]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the brake was asked (-want +got):\n%s", diff)
	}
	if r := c.Risks[0]; r.Reason != comparison.RiskBrake || r.Policy != "Kustomization flux/apps" || r.Message != "too much" {
		t.Errorf("risk = %+v", r)
	}
}

// TestSecrets: no value of a Secret comes out, and that one changed does.
func TestSecrets(t *testing.T) {
	const (
		policy = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: all}, spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}, {apiVersion: v1, kind: ConfigMap}], placement: {}}}\n---\n"
		secret = "{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: key}, data: {password: aHVudGVyMg==, user: cm9vdA==}}\n---\n"
		marked = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: dsn, annotations: {kustomize.flotilla.io/holds-secrets: fields}}, data: {url: 'db://hunter2', port: '5432'}}\n---\n"
		named  = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: hunter2, annotations: {kustomize.flotilla.io/holds-secrets: name}}, data: {a: b}}\n---\n"
	)
	cases := map[string]struct{ base, head, want string }{
		"a key of a Secret": {
			secret, strings.Replace(secret, "aHVudGVyMg==", "aHVudGVyMw==", 1),
			"updated Secret shop/key in east\n  /data/password: (hidden: A) → (hidden: B)",
		},
		"what a variable put into a ConfigMap": {
			marked, strings.Replace(marked, "hunter2", "hunter3", 1),
			"updated ConfigMap shop/dsn in east\n  /data/url: (hidden: A) → (hidden: B)",
		},
		"a name": {
			named, strings.Replace(named, "a: b", "a: c", 1),
			"updated ConfigMap shop/*** in east\n  /data/a: (hidden: A) → (hidden: B)",
		},
		"a type": {
			secret, strings.Replace(secret, ", data:", ", immutable: true, data:", 1),
			"updated Secret shop/key in east\n  /immutable: <nil> → true",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := compared(t, "clusters: east\n---\n"+policy+tc.base, "clusters: east\n---\n"+policy+tc.head)
			got := told(c)
			for _, change := range c.Changes {
				for _, f := range change.Fields {
					if f.Old != nil && f.Old == f.New {
						t.Errorf("%s changes, and its stand-in does not: %v", f.Path, f.Old)
					}
					if f.Path != "/immutable" {
						got = strings.NewReplacer(fmt.Sprint(f.Old), "(hidden: A)", fmt.Sprint(f.New), "(hidden: B)").Replace(got)
					}
				}
				all := fmt.Sprint(change.Before, change.After)
				for _, word := range []string{"hunter", "aHVudGVy", "5432"} {
					if strings.Contains(all, word) {
						t.Errorf("%q is in %s", word, all)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	other := compared(t, "clusters: east\n---\n"+policy+secret, "clusters: east\n---\n"+policy, func(in *comparison.Input) { in.Salt = []byte("other") })
	first := compared(t, "clusters: east\n---\n"+policy+secret, "clusters: east\n---\n"+policy)
	if cmp.Equal(first.Changes[0].Before, other.Changes[0].Before) {
		t.Error("another salt makes no other stand-ins")
	}
}

// TestHiddenNames: objects whose names must not be shown stay apart, and no message names one.
func TestHiddenNames(t *testing.T) {
	const (
		policy = "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: all}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}}\n---\n"
		held   = "annotations: {kustomize.flotilla.io/holds-secrets: name}"
	)
	base := fleet3 + policy + "{apiVersion: v1, kind: Namespace, metadata: {name: hunter1, " + held + "}}\n---\n"
	for _, name := range []string{"hunter2", "hunter3"} {
		base += "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: " + name + ", " + held + "}}\n---\n"
	}
	c := compared(t, base, fleet3+policy)
	got := told(c)
	if strings.Contains(got, "hunter") || !strings.Contains(got, "Namespace *** is deleted") {
		t.Errorf("a name is told, or nothing of the namespace:\n%s", got)
	}
	if n := strings.Count(got, "deleted ConfigMap shop/*** in east,north,west"); n != 2 {
		t.Errorf("%d of 2 deletions are told:\n%s", n, got)
	}
}
