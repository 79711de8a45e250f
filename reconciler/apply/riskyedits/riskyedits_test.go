package riskyedits_test

import (
	order "cmp"
	"errors"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/riskyedits"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web}}}`
	// everything is the policy that selects everything, at first.
	everything = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: all, namespace: shop},
  spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [east, west]}}}}`
	eastern = `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: east, labels: {tier: gold}}, spec: {syncMode: Push}}`
	tuned   = `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: tune, namespace: shop},
  spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], overrideRules: [{targetCluster: {clusterNames: [west]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]}}`
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// policy is the first one, as the hub has it.
func policy(t *testing.T) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	out := &policyv1alpha1.PropagationPolicy{}
	if err := yaml.Unmarshal([]byte(everything), out); err != nil {
		t.Fatal(err)
	}
	out.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-all"}
	return out
}

// carried is the binding of a volume claim that a policy places on both clusters.
func carried(by *policyv1alpha1.PropagationPolicy) client.Object {
	b := attached(by).(*workv1alpha2.ResourceBinding)
	b.Spec.RequiredBy, b.Spec.Clusters = nil, []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
	propagation.ClaimOf(by).Set(b)
	return b
}

// preserved is the binding of a claim that stays in clusters which it leaves.
func preserved(by *policyv1alpha1.PropagationPolicy) client.Object {
	b := carried(by).(*workv1alpha2.ResourceBinding)
	b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	return b
}

// attached is the binding of a claim that is propagated as a dependency of the Deployment.
func attached(*policyv1alpha1.PropagationPolicy) client.Object {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName("PersistentVolumeClaim", "data")},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"},
			RequiredBy: []workv1alpha2.BindingSnapshot{{
				Namespace: "shop", Name: workv1alpha2.BindingName("Deployment", "web"), Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 1}},
			}},
		},
	}
}

// shared is a dependency of something else in one of the clusters, too.
func shared(by *policyv1alpha1.PropagationPolicy) client.Object {
	b := attached(by).(*workv1alpha2.ResourceBinding)
	b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{
		Namespace: "shop", Name: workv1alpha2.BindingName("ConfigMap", "theirs"), Clusters: []workv1alpha2.TargetCluster{{Name: "west"}},
	})
	return b
}

// hub returns a hub with two clusters that run a Deployment and a ConfigMap by the first policy, and with more objects.
func hub(t *testing.T, more ...client.Object) client.Client {
	t.Helper()
	policy := policy(t)
	objects := append(more, policy)
	for name, tier := range map[string]string{"east": "gold", "west": "silver"} {
		objects = append(objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}, Spec: clusterv1alpha1.ClusterSpec{Region: "eu"}})
	}
	for kind, of := range map[string]workv1alpha2.ObjectReference{
		"Deployment": {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, "ConfigMap": {APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "cfg"},
	} {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName(kind, of.Name)}}
		b.Spec = workv1alpha2.ResourceBindingSpec{Resource: of, Clusters: []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}}
		if kind == "Deployment" {
			b.Spec.Replicas, b.Spec.Clusters = 2, []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 1}}
		}
		propagation.ClaimOf(policy).Set(b)
		objects = append(objects, b)
	}
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
}

func TestWhatLooksLikeAMistake(t *testing.T) {
	const both = "2 objects (ConfigMap shop/cfg, Deployment shop/web)"
	const typo = "clusterNames names wst, which does not exist (did you mean west?): "
	edited := func(text string, changes ...string) string { return strings.NewReplacer(changes...).Replace(text) }
	other := edited(everything, "name: all", "name: other")
	byTier := edited(everything, "clusterNames: [east, west]", "labelSelector: {matchExpressions: [{key: tier, operator: In, values: [gold, silver]}]}")
	wide := edited(everything, "kind: PropagationPolicy", "kind: ClusterPropagationPolicy", "name: all, namespace: shop", "name: wide")
	labelled := edited(wide, "kind: ConfigMap}", "kind: ConfigMap, labelSelector: {matchLabels: {tier: front}}}", "{apiVersion: apps/v1, kind: Deployment}, ", "")
	retuned := edited(tuned, "name: tune", "name: anew")
	preempting := edited(other, "spec: {", "spec: {priority: 10, preemption: Always, ")
	cases := map[string]struct {
		wants   []string // besides the Deployment
		removed []string
		claim   func(policy *policyv1alpha1.PropagationPolicy) client.Object // in both clusters, too
		allowed string
		want    string
		allow   string            // what the refusal asks to allow; empty for the revision
		there   []string          // more policies on the hub
		was     string            // the Deployment before
		theirs  map[string]string // labels of the ConfigMap of another Kustomization; nil: not known
	}{
		"a policy is dropped, and one that names a mistyped cluster selects a template of others by its labels": {
			removed: []string{everything}, there: []string{edited(labelled, "west", "wst")}, theirs: map[string]string{"tier": "front"},
			want: typo + "ClusterPropagationPolicy/wide would take 1 object (ConfigMap shop/cfg) out of west",
		},
		"a policy is dropped, and a new one that names a mistyped cluster selects a template of others by its labels": {
			removed: []string{everything}, wants: []string{edited(labelled, "west", "wst")}, theirs: map[string]string{"tier": "front"},
			want: typo + "ClusterPropagationPolicy/wide would take 1 object (ConfigMap shop/cfg) out of west",
		},
		"a policy selects a template of others no more, and one that names a mistyped cluster does by its labels": {
			wants: []string{edited(everything, "kind: ConfigMap}", "kind: ConfigMap, labelSelector: {matchLabels: {tier: back}}}")}, there: []string{edited(labelled, "west", "wst")},
			theirs: map[string]string{"tier": "front"},
			want:   typo + "ClusterPropagationPolicy/wide would take 1 object (ConfigMap shop/cfg) out of west",
		},
		"a policy selects a template of others no more, names a mistyped cluster, and nobody carries that any more": {
			wants:  []string{edited(everything, "west", "wst", "kind: ConfigMap}", "kind: ConfigMap, labelSelector: {matchLabels: {tier: back}}}")},
			theirs: map[string]string{"tier": "front"},
			want:   typo + "PropagationPolicy/shop/all would take 1 object (Deployment shop/web) out of west",
		},
		"a policy is dropped, and nobody carries a template of others any more, which runs on": {
			removed: []string{everything}, there: []string{edited(labelled, "west", "wst")}, theirs: map[string]string{"tier": "back"},
		},
		"a policy gives way to one that stays as it is, and names a mistyped cluster": {
			wants: []string{edited(everything, "spec: {", "spec: {priority: 1, ")}, there: []string{edited(preempting, "west", "wst")},
			want: typo + "PropagationPolicy/shop/other would take " + both + " out of west",
		},
		"a policy gives way to one that stays as it is": {wants: []string{edited(everything, "spec: {", "spec: {priority: 1, ")}, there: []string{preempting}},
		"a policy gives way to one that is wanted as it is": {
			wants: []string{edited(everything, "spec: {", "spec: {priority: 1, ")}, there: []string{edited(preempting, "west", "wst")}, allowed: "propagationpolicy/shop/other",
		},
		"a policy is dropped, and one that stays as it is names a mistyped cluster": {
			removed: []string{everything}, there: []string{edited(wide, "west", "wst")}, want: typo + "ClusterPropagationPolicy/wide would take " + both + " out of west",
		},
		"a policy is dropped, and one that stays as it is takes a claim out of a cluster": {
			removed: []string{everything}, there: []string{edited(wide, "east, west", "east")}, claim: attached, allow: "persistentvolumeclaim/shop/data",
			want: "a PersistentVolumeClaim goes with its data: ClusterPropagationPolicy/wide would take 1 object (PersistentVolumeClaim shop/data) out of west",
		},
		"a policy is dropped, and one that stays as it is means the same": {removed: []string{everything}, there: []string{wide}, claim: attached},
		"a label has one that stays as it is take over, and names a mistyped cluster": {
			was: strings.Replace(web, "app: web", "app: old", 1), there: []string{edited(preempting, "west", "wst", "kind: Deployment", "kind: Deployment, labelSelector: {matchLabels: {app: web}}", ", {apiVersion: v1, kind: ConfigMap}", "")},
			want: typo + "PropagationPolicy/shop/other would take 1 object (Deployment shop/web) out of west",
		},
		"an override is renamed": {wants: []string{retuned}, removed: []string{tuned}, there: []string{tuned}},
		"an override is renamed, and names a mistyped cluster": {
			wants: []string{edited(retuned, "west", "wst")}, removed: []string{tuned}, there: []string{tuned}, want: typo + "OverridePolicy/shop/anew would leave 1 object (Deployment shop/web) without what tune changes in west",
		},
		"an override is renamed and changed, and names a mistyped cluster": {
			wants: []string{edited(retuned, "west", "wst", "a: b", "a: c")}, removed: []string{tuned}, there: []string{tuned}, want: typo + "OverridePolicy/shop/anew would leave 1 object (Deployment shop/web) without what tune changes in west",
		},
		"an override becomes one of all namespaces, and names a mistyped cluster": {
			wants: []string{edited(retuned, "west", "wst", "kind: OverridePolicy", "kind: ClusterOverridePolicy", ", namespace: shop", "")}, removed: []string{tuned}, there: []string{tuned},
			want: typo + "ClusterOverridePolicy/anew would leave 1 object (Deployment shop/web) without what tune changes in west",
		},
		"an override is renamed as somebody wants it": {wants: []string{edited(retuned, "west", "wst")}, removed: []string{tuned}, there: []string{tuned}, allowed: "overridepolicy/shop/anew"},
		"a further one names a mistyped cluster, as an override is renamed": {
			wants: []string{retuned, edited(retuned, "west", "wst", "name: anew", "name: more")}, removed: []string{tuned}, there: []string{tuned},
		},
		"an override goes, and a new one of something else names a mistyped cluster": {
			wants: []string{edited(retuned, "west", "wst", "apiVersion: apps/v1, kind: Deployment", "apiVersion: v1, kind: ConfigMap")}, removed: []string{tuned}, there: []string{tuned},
		},
		"a cluster less, and a claim in it": {
			wants: []string{edited(everything, "[east, west]", "[east]", "kind: ConfigMap}", "kind: ConfigMap}, {apiVersion: v1, kind: PersistentVolumeClaim}")},
			claim: carried, want: "a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of west", allow: "persistentvolumeclaim/shop/data",
		},
		"a cluster less, and a claim that its policy preserves": {
			wants: []string{edited(everything, "[east, west]", "[east]", "kind: ConfigMap}", "kind: ConfigMap}, {apiVersion: v1, kind: PersistentVolumeClaim}", "spec: {", "spec: {preserveResourcesOnDeletion: true, ")}, claim: preserved, allow: "persistentvolumeclaim/shop/data",
			want: "a PersistentVolumeClaim stays in clusters that it leaves, as its policy preserves it: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of west",
		},
		"a cluster less, and a claim that its policy preserves no more": {
			wants: []string{edited(everything, "[east, west]", "[east]", "kind: ConfigMap}", "kind: ConfigMap}, {apiVersion: v1, kind: PersistentVolumeClaim}")}, claim: preserved, allow: "persistentvolumeclaim/shop/data",
			want: "a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of west",
		},
		"a cluster less, and a claim goes along with its user": {
			wants: []string{edited(everything, "[east, west]", "[east]")}, claim: attached,
			want: "a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of west", allow: "persistentvolumeclaim/shop/data",
		},
		"a cluster less, and a claim that others use there, too": {wants: []string{edited(everything, "[east, west]", "[east]")}, claim: shared},
		"a cluster less, and a claim that is allowed to go":      {wants: []string{edited(everything, "[east, west]", "[east]")}, claim: attached, allowed: "persistentvolumeclaim/shop/data"},
		"a cluster less, by a policy that is allowed to":         {wants: []string{edited(everything, "[east, west]", "[east]")}, claim: attached, allowed: "propagationpolicy/shop/all"},
		"a revision does not let a claim go": {
			wants: []string{edited(everything, "[east, west]", "[east]")}, claim: attached, allowed: "main@sha1:1",
			want: "a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of west", allow: "persistentvolumeclaim/shop/data",
		},
		"a name is mistyped, and a claim goes with it": {
			wants: []string{edited(everything, "west", "wst")}, claim: attached,
			want:  "clusterNames names wst, which does not exist (did you mean west?): PropagationPolicy/shop/all would take " + both + " out of west; a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of west",
			allow: "main@sha1:1, persistentvolumeclaim/shop/data",
		},
		"a cluster more, and a claim": {wants: []string{edited(everything, "[east, west]", "[east, west, north]")}, claim: attached},
		"a cluster less":              {wants: []string{edited(everything, "[east, west]", "[east]")}},
		"a cluster that may join":     {wants: []string{edited(everything, "[east, west]", "[east, west, north]")}},
		"a name is mistyped":          {wants: []string{edited(everything, "west", "wst")}, want: typo + "PropagationPolicy/shop/all would take " + both + " out of west"},
		"a mistake that is wanted":    {wants: []string{edited(everything, "west", "wst")}, allowed: "propagationpolicy/shop/all"},
		"a policy is renamed":         {wants: []string{other}, removed: []string{everything}},
		"a policy is renamed and a name mistyped": {
			wants: []string{edited(other, "west", "wst")}, removed: []string{everything}, want: typo + "PropagationPolicy/shop/other would take " + both + " out of west",
		},
		"a new policy that takes nothing over": {wants: []string{edited(other, "west", "wst")}},
		"a new policy that takes over":         {wants: []string{preempting}},
		"a new policy that takes over and means no cluster": {
			wants: []string{edited(preempting, "east, west", "wst")}, want: typo + "PropagationPolicy/shop/other would take " + both + " out of east, west",
		},
		"a new policy that takes over what its labels select": {
			wants: []string{edited(preempting, "east, west", "wst", "kind: Deployment", "kind: Deployment, labelSelector: {matchLabels: {app: web}}", ", {apiVersion: v1, kind: ConfigMap}", "")},
			want:  typo + "PropagationPolicy/shop/other would take 1 object (Deployment shop/web) out of east, west",
		},
		"a label is mistyped": {
			wants: []string{edited(everything, "clusterNames: [east, west]", "labelSelector: {matchExpressions: [{key: tier, operator: In, values: [gold, sliver]}]}")},
			want:  "labelSelector asks for tier=sliver, which no cluster has (did you mean silver?): PropagationPolicy/shop/all would take " + both + " out of west",
		},
		"a weight is mistyped": {
			wants: []string{edited(everything, "placement: {", `placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [
        {targetCluster: {clusterNames: [east]}, weight: 1}, {targetCluster: {clusterNames: [wst]}, weight: 1}]}}, `)},
			want: typo + "PropagationPolicy/shop/all would take 1 object (Deployment shop/web) out of west",
		},
		"a name is mistyped, for what is of another Kustomization and found by its labels": {
			wants: []string{edited(everything, "west", "wst", "kind: ConfigMap}", "kind: ConfigMap, labelSelector: {matchLabels: {app: web}}}")},
			want:  typo + "PropagationPolicy/shop/all would take " + both + " out of west",
		},
		"a cluster is labelled anew, as others are": {wants: []string{byTier, edited(eastern, "gold", "silver")}},
		"a cluster's label is mistyped": {
			wants: []string{byTier, edited(eastern, "gold", "glod")},
			want:  "the Cluster east gets the label tier=glod, which none had: Cluster/east would take " + both + " out of east",
		},
		"a label's key is mistyped": {
			wants: []string{byTier, edited(eastern, "tier", "teir")},
			want:  "the Cluster east gets the label teir=gold, which none had: Cluster/east would take " + both + " out of east",
		},
		"those of all clusters are": {
			wants: []string{byTier, edited(eastern, "gold", "glod"), edited(eastern, "east", "west", "gold", "glod")},
			want:  "the Cluster east gets the label tier=glod, which none had: Cluster/east would take " + both + " out of east; the Cluster west gets the label tier=glod, which none had: Cluster/west would take " + both + " out of west",
		},
		"a cluster's region is mistyped": {
			wants: []string{edited(everything, "clusterNames: [east, west]", "fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}"), edited(eastern, "{syncMode: Push}", "{syncMode: Push, region: ue}")},
			want:  "the Cluster east gets the region ue, which none had: Cluster/east would take " + both + " out of east",
		},
		"what runs there is of another Kustomization, and found by its labels": {
			wants: []string{edited(byTier, "kind: ConfigMap}", "kind: ConfigMap, labelSelector: {matchLabels: {app: web}}}"), edited(eastern, "gold", "glod")},
			want:  "the Cluster east gets the label tier=glod, which none had: Cluster/east would take " + both + " out of east",
		},
		"a cluster's label is mistyped, and nobody asks for it": {wants: []string{edited(eastern, "gold", "glod")}},
		"a cluster's label that is wanted":                      {wants: []string{byTier, edited(eastern, "gold", "glod")}, allowed: "cluster/east"},
		"an override is as it was":                              {wants: []string{tuned}},
		"an override names a mistyped cluster":                  {wants: []string{edited(tuned, "west", "wst")}, want: typo + "OverridePolicy/shop/tune would leave 1 object (Deployment shop/web) without what it changes in west"},
		"an override of a mistake that is wanted":               {wants: []string{edited(tuned, "west", "wst")}, allowed: "overridepolicy/shop/tune"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := riskyedits.Revision{Name: "main@sha1:1", Seen: applier.Observed{}}
			r.Labels = func(template *unstructured.Unstructured) (map[string]string, bool, error) {
				return tc.theirs, tc.theirs != nil && template.GetName() == "cfg", nil
			}
			if tc.allowed != "" {
				r.Allowed = inventory.AllowanceOf(tc.allowed, "", r.Name)
			}
			for _, text := range []string{everything, tuned} {
				there := object(t, text)
				r.Seen[inventory.IDOf(there)] = there
			}
			there := object(t, eastern)
			there.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: applier.FieldManager, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:tier":{}}}}`)}}})
			r.Seen[inventory.IDOf(there)] = there
			if tc.was != "" {
				there := object(t, tc.was)
				r.Seen[inventory.IDOf(there)] = there
			}
			for _, text := range append(tc.wants, web) {
				r.Changes = append(r.Changes, applier.Change{Desired: object(t, text), Action: applier.Configured})
			}
			for _, text := range tc.removed {
				r.Removed = append(r.Removed, inventory.IDOf(object(t, text)))
			}
			got, allow := "", ""
			reason, wantReason := "", inventory.ReasonPruneBlocked
			if (strings.HasPrefix(tc.want, typo) || strings.HasPrefix(tc.want, "labelSelector asks for")) && !strings.Contains(tc.want, "PersistentVolumeClaim") {
				wantReason = "UnknownCluster"
			}
			var more []client.Object
			for _, text := range tc.there {
				obj := object(t, text)
				obj.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + obj.GetName(), policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-" + obj.GetName()})
				more = append(more, obj)
			}
			if tc.claim != nil {
				more = append(more, tc.claim(policy(t)))
			}
			if err := riskyedits.Check(t.Context(), hub(t, more...), r); err != nil {
				got, allow, _ = strings.Cut(err.Error(), "; revision main@sha1:1 is not applied: correct it, or allow it with the annotation kustomize.flotilla.io/allow-prune: ")
				if refusal := (*riskyedits.Refusal)(nil); errors.As(err, &refusal) {
					reason = refusal.Reason()
				}
			}
			if got != "" && reason != wantReason {
				t.Errorf("reason %q, want %q", reason, wantReason)
			}
			allow, trailer, _ := strings.Cut(allow, ", or in a commit by the trailer Flotilla-Allow-Delete: ")
			if want := strconv.Quote(order.Or(tc.allow, r.Name)); got != "" && allow != want {
				t.Errorf("allowed by %s, want %s", allow, want)
			}
			if want := order.Or(strings.Replace(tc.allow, r.Name, "propagationpolicy/shop/all", 1), namedIn(tc.want)); trailer != want {
				t.Errorf("allowed in a commit by %s, want %s", trailer, want)
			}
			r.Allowed = inventory.AllowanceOf("", trailer, r.Name)
			if err := riskyedits.Check(t.Context(), hub(t, more...), r); got != "" && err != nil {
				t.Errorf("the trailer does not help: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// namedIn returns the policies, or Clusters, that a refusal is about, as a trailer names them.
func namedIn(refusal string) string {
	var names []string
	for _, found := range regexp.MustCompile(`(\S+) would `).FindAllStringSubmatch(refusal, -1) {
		names = append(names, strings.ToLower(found[1]))
	}
	return strings.Join(names, ", ")
}

// TestManyClaimsGoByTheirPolicy: the trailer names their policy in place of many claims, so that it stays short.
func TestManyClaimsGoByTheirPolicy(t *testing.T) {
	narrow := strings.NewReplacer("[east, west]", "[east]", "kind: ConfigMap}", "kind: ConfigMap}, {apiVersion: v1, kind: PersistentVolumeClaim}").Replace(everything)
	there := object(t, everything)
	r := riskyedits.Revision{Name: "main@sha1:1", Seen: applier.Observed{inventory.IDOf(there): there}, Changes: []applier.Change{{Desired: object(t, narrow), Action: applier.Configured}}}
	var claims []client.Object
	var names []string
	for _, name := range []string{"a", "b", "c", "d"} {
		b := carried(policy(t)).(*workv1alpha2.ResourceBinding)
		b.Name, b.Spec.Resource.Name = workv1alpha2.BindingName("PersistentVolumeClaim", name), name
		claims = append(claims, b)
		names = append(names, "persistentvolumeclaim/shop/"+name)
		want := "Flotilla-Allow-Delete: " + strings.Join(names, ", ")
		if name == "d" {
			want = "Flotilla-Allow-Delete: propagationpolicy/shop/all"
		}
		err := riskyedits.Check(t.Context(), hub(t, claims...), r)
		if err == nil || !strings.HasSuffix(err.Error(), " by the trailer "+want) {
			t.Errorf("with %d claims %v, want it to end with %s", len(claims), err, want)
		}
	}
}

// TestWhatIsNamedGoes: the Works of a claim are annotated, so that it is deleted with them, in the clusters that the
// policy leaves, if people have named the policy or the claim; and in no others.
func TestWhatIsNamedGoes(t *testing.T) {
	less := strings.Replace(everything, "[east, west]", "[east]", 1)
	for name, tc := range map[string]struct {
		policy, allowed string
		claim           func(*policyv1alpha1.PropagationPolicy) client.Object
		action          applier.Action
		want            []string
	}{
		"the claim is named":                   {policy: less, claim: attached, allowed: "persistentvolumeclaim/shop/data", action: applier.Configured, want: []string{"west"}},
		"the policy is named":                  {policy: less, claim: attached, allowed: "propagationpolicy/shop/all", action: applier.Configured, want: []string{"west"}},
		"the policy has been so":               {policy: less, claim: attached, allowed: "propagationpolicy/shop/all", action: applier.Unchanged},
		"the revision is named":                {policy: less, claim: attached, allowed: "main@sha1:1", action: applier.Configured},
		"another claim is named":               {policy: less, claim: attached, allowed: "persistentvolumeclaim/shop/more", action: applier.Configured},
		"others use it there, too":             {policy: less, claim: shared, allowed: "persistentvolumeclaim/shop/data", action: applier.Configured},
		"no cluster is left":                   {policy: everything, claim: attached, allowed: "persistentvolumeclaim/shop/data", action: applier.Configured},
		"it is named, and carried by a policy": {policy: strings.Replace(less, "kind: ConfigMap}", "kind: ConfigMap}, {apiVersion: v1, kind: PersistentVolumeClaim}", 1), claim: carried, allowed: "persistentvolumeclaim/shop/data", action: applier.Configured, want: []string{"west"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := tc.claim(policy(t))
			labels := map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"}
			maps.Copy(labels, claim.GetLabels())
			claim.SetLabels(labels)
			var objects []client.Object
			for _, cluster := range []string{"east", "west"} {
				objects = append(objects, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
					Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName("PersistentVolumeClaim", "data", "shop"),
					Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"},
				}})
			}
			c := hub(t, append(objects, claim)...)
			r := riskyedits.Revision{Name: "main@sha1:1", Seen: applier.Observed{}, Allowed: inventory.AllowanceOf(tc.allowed, "", "main@sha1:1")}
			there := object(t, everything)
			r.Seen[inventory.IDOf(there)] = there
			r.Changes = []applier.Change{{Desired: object(t, tc.policy), Action: tc.action}, {Desired: object(t, web), Action: applier.Unchanged}}
			if err := riskyedits.LetGo(t.Context(), c, r); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, obj := range objects {
				w := &workv1alpha1.Work{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), w); err != nil {
					t.Fatal(err)
				}
				if w.Annotations[workv1alpha2.AllowCascadeAnnotation] == "true" {
					cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
					got = append(got, cluster)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it goes in these (-want +got):\n%s", diff)
			}
		})
	}
}
