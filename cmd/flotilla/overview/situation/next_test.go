package situation_test

import (
	stdcmp "cmp"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestWhatToDoAboutACluster: the next step depends on the reason and the mode.
func TestWhatToDoAboutACluster(t *testing.T) {
	const untrusted = "cluster is not reachable: its certificate is not trusted, or is for another name"
	for name, tc := range map[string]struct {
		mode   clusterv1alpha1.ClusterSyncMode
		reason string
		want   string
		says   string
	}{
		"it was built anew":          {clusterv1alpha1.Push, "ClusterNotReachable", "was it built anew? flotilla unjoin east, and then flotilla join east --cluster-kubeconfig FILE; else correct its caBundle: flotilla describe cluster east", untrusted},
		"nobody answers":             {clusterv1alpha1.Push, "ClusterNotReachable", "see whether east is up and accepts the fleet's credentials: flotilla describe cluster east", ""},
		"an agent is silent":         {clusterv1alpha1.Pull, "ClusterStatusUnknown", "see whether flotilla-agent runs for east and reaches the control plane: flotilla describe cluster east", ""},
		"another has it":             {clusterv1alpha1.Push, "ClaimedByAnotherHub", "flotilla unjoin east leaves it to the other control plane; flotilla join east --take-over --dry-run says what taking it back means", ""},
		"another has it, by agent":   {clusterv1alpha1.Pull, "ClaimedByAnotherHub", "flotilla unregister east leaves it to the other control plane; flotilla register --cluster-name east --take-over --dry-run says what taking it back means", ""},
		"a copy of the hub has it":   {clusterv1alpha1.Push, "ActsElsewhere", "stop this control plane, or the one that runs from a copy of its folder: flotilla describe cluster east", ""},
		"the hub has moved":          {clusterv1alpha1.Push, "Moving", "wait about 40s, or 100s where yet another copy has asked there: this control plane was elsewhere when it last acted there", ""},
		"another cluster answers":    {clusterv1alpha1.Push, "IdentityMismatch", "flotilla unjoin east, and then flotilla join east, if the cluster that answers there is to have its place", ""},
		"it is back":                 {clusterv1alpha1.Push, "AnswersAgain", "nothing, unless it goes away again", ""},
		"it is back, by its agent":   {clusterv1alpha1.Pull, "AnswersAgain", "nothing, unless it goes away again", ""},
		"our token was revoked":      {clusterv1alpha1.Push, "CredentialsRefused", "flotilla join east --cluster-kubeconfig FILE brings new credentials", ""},
		"an agent's was, over there": {clusterv1alpha1.Pull, "CredentialsRefused", "see whether flotilla-agent runs for east and reaches the control plane: flotilla describe cluster east", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			message := stdcmp.Or(tc.says, "m")
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: tc.mode}}
			c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: tc.reason, Message: message}}
			s.Cluster(c, time.Time{})
			want := []situation.Problem{{State: situation.Failed, Kind: "Cluster", Name: "east", Message: message, Next: tc.want}}
			if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWaitsSinceTheHubWasSetBack: the next step is to resume the control plane, and nothing in the cluster.
func TestWhatWaitsSinceTheHubWasSetBack(t *testing.T) {
	for held, want := range map[metav1.ConditionStatus]string{
		metav1.ConditionTrue:  "flotilla resume hub --dry-run",
		metav1.ConditionFalse: "put right what the cluster says; it is tried again. flotilla explain deployment/web -n shop --cluster east",
	} {
		s := situation.NewSurvey(now, "")
		c := member("east")
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionHeld, Status: held, Message: "set back"})
		s.Cluster(c, time.Time{})
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", AppliedMessage: "held: would make Deployment shop/web"}}
		s.Binding(b, nil)
		next := ""
		for _, p := range s.Fleet().Problems {
			if p.Kind == "Deployment" {
				next = p.Next
			}
		}
		if next != want {
			t.Errorf("held %s: the next step is %q, want %q", held, next, want)
		}
	}
}

// TestAnOverrideThatDoesNotFit: the next step is to correct the override or the template; nothing was sent to
// the cluster.
func TestAnOverrideThatDoesNotFit(t *testing.T) {
	for name, tc := range map[string]struct{ reported, want string }{
		"an OverridePolicy": {
			"override policy shop/images: overrideRules[0].imageOverrider[0] at /spec/image: bad/Image:::x is no image",
			"correct the override, or the template, so that they fit: flotilla edit overridepolicy images -n shop; flotilla explain deployment/web -n shop --cluster east",
		},
		"a ClusterOverridePolicy": {
			"override policy images: imageOverrider[0]: no",
			"correct the override, or the template, so that they fit: flotilla edit clusteroverridepolicy images; flotilla explain deployment/web -n shop --cluster east",
		},
		"the cluster, in words of its own": {
			"override policy a b: no", "put right what the cluster says; it is tried again. flotilla explain deployment/web -n shop --cluster east",
		},
		"an object that is in the way": {
			"Deployment shop/web already exists in the cluster and is not managed by Flotilla: set conflictResolution to Overwrite in the policy to take it over, with what it holds, or give one of the two another name",
			"have it taken over, with what it holds, by conflictResolution: Overwrite in its policy, or give one of the two another name. flotilla explain deployment/web -n shop --cluster east",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
			b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", AppliedMessage: tc.reported}}
			s.Binding(b, nil)
			var got []string
			for _, p := range s.Fleet().Problems {
				got = append(got, p.Next)
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatNoWorkNames: after the store was set back, objects that no Work names include those made since. The next
// step is not to prune them while the control plane waits, and later only after a look at each.
func TestWhatNoWorkNames(t *testing.T) {
	const looked = "look at each first, as after a restored backup what was made since is among them: flotilla prune --cluster east --dry-run"
	for name, tc := range map[string]struct {
		held metav1.ConditionStatus
		want string
	}{
		"while the cluster waits":                  {metav1.ConditionTrue, "leave them alone, as what was made since the backup is among them: flotilla resume hub --dry-run"},
		"while others wait":                        {metav1.ConditionFalse, looked},
		"where nobody waits, or does not any more": {"", looked},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			c := member("east")
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
				Type: clusterv1alpha1.ClusterConditionOrphansFound, Status: metav1.ConditionTrue,
				Message: "1 object that no Work names: ConfigMap team-a/late; flotilla prune --cluster east removes what nobody needs",
			})
			if tc.held != "" {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionHeld, Status: tc.held, Message: "set back"})
			}
			s.Cluster(c, time.Time{})
			got := slices.DeleteFunc(s.Fleet().Problems, func(p situation.Problem) bool { return p.Kind != "Cluster" })
			want := []situation.Problem{{State: situation.Progressing, Kind: "Cluster", Name: "east", Message: "1 object that no Work names: ConfigMap team-a/late", Next: tc.want}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAdviceIsWhole: advice in a message becomes the next step, in full, while the message is
// shortened. Text of others in a message is not taken for advice.
func TestAdviceIsWhole(t *testing.T) {
	const acts = "it acts as the service account shop/default, as it names no spec.serviceAccountName; "
	const command = "to allow it: kubectl create rolebinding shop-default-edit -n shop --clusterrole=edit --serviceaccount=shop:default"
	refused := strings.Repeat("ConfigMap/shop/a: may not be written; ", 9)
	for name, tc := range map[string]struct{ kind, reason, message, want string }{
		"a right is missing":         {"Kustomization", "Forbidden", refused + acts + command, command},
		"so that nothing is pruned":  {"Kustomization", "PruneFailed", refused + acts + command, command},
		"nobody has the right":       {"Kustomization", "Forbidden", refused + acts + "an administrator\x1b writes this", "an administrator writes this"},
		"another refusal":            {"Kustomization", "Forbidden", "exceeded quota", "put right what it says, then: flotilla reconcile kustomization web -n shop"},
		"a message of somebody else": {"Kustomization", "InvalidObject", acts + command, "correct the files and commit; see flotilla trace kustomization/web -n shop"},
		"a wrong path": {"Kustomization", "PathNotFound", `spec.path "./ap": path not found in the source, which has app`,
			"correct spec.path: flotilla edit kustomization web -n shop, or commit that folder; see flotilla trace kustomization/web -n shop"},
		"the brake holds": {
			"Kustomization", "PruneBlocked", refused + `nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop"`,
			`put it right and commit, or let it go: flotilla annotate kustomization web -n shop --overwrite kustomize.flotilla.io/allow-prune="namespace/shop"`,
		},
		"the brake holds, and a commit may let it go": {
			"Kustomization", "PruneBlocked", refused + `nothing was applied; commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: "namespace/shop", or in a commit by the trailer Flotilla-Allow-Delete: namespace/shop`,
			`put it right and commit, or let it go: in a commit by the trailer "Flotilla-Allow-Delete: namespace/shop", or by flotilla annotate kustomization web -n shop --overwrite kustomize.flotilla.io/allow-prune="namespace/shop"`,
		},
		"a policy names a cluster that is not there": {
			"Kustomization", "UnknownCluster", `clusterNames names wst, which does not exist (did you mean west?): PropagationPolicy/shop/all would take 1 object (ConfigMap shop/a) out of west; revision 1 is not applied: correct it, or allow it with the annotation kustomize.flotilla.io/allow-prune: "main@sha1:1"`,
			`correct the name and commit, or join the cluster (flotilla get clusters), or let it go: flotilla annotate kustomization web -n shop --overwrite kustomize.flotilla.io/allow-prune="main@sha1:1"`,
		},
		"the brake holds, in words of another version": {"Kustomization", "PruneBlocked", refused + "nothing was applied", "commit it again, or allow it as the whole message says: flotilla describe kustomization web -n shop"},
		"an object stands in two":                      {"Kustomization", "SharedObject", "ConfigMap/shop/a stands in two", "see the Kustomizations that it names, and take it out of one: flotilla get kustomizations -A"},
		"a cluster is not heard of":                    {"Kustomization", "ClusterSilent", "health is not known", "see to the cluster that is silent (flotilla get clusters); this follows by itself. To go on without it: flotilla annotate kustomization web -n shop kustomize.flotilla.io/max-unreachable=1"},
		"a field that is not supported":                {"Kustomization", "NotSupported", "spec.kubeConfig.configMapRef is not supported yet", "correct it: flotilla edit kustomization web -n shop"},
		"there is no room for it":                      {"Kustomization", "LimitExceeded", "the namespace shop would have 2 Kustomizations", "make room in the namespace, which is noticed within a minute, or have an administrator raise serve --namespace-limits"},
		"there is no room for its artifact":            {"GitRepository", "LimitExceeded", "the namespace shop would have 2 sources", "make room in the namespace, which is noticed within a minute, or have an administrator raise serve --namespace-limits"},
		"an address that is not allowed":               {"GitRepository", "AddressNotAllowed", refused + "10.0.0.1 leads to a private address; an administrator can allow that with --source-networks", "an administrator can allow that with --source-networks"},
		"a name that leads there":                      {"GitRepository", "AddressNotAllowed", "git is not there; an administrator can allow networks with --source-networks", "an administrator can allow networks with --source-networks"},
		"an address that nobody may allow":             {"GitRepository", "AddressNotAllowed", "it leads to the control plane itself, where no source may be", "put right what it says, then: flotilla reconcile source git web -n shop"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			meta := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
			conditions := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: tc.reason, Message: tc.message}}
			if tc.kind == "Kustomization" {
				s.Kustomization(&kustomizev1.Kustomization{ObjectMeta: meta, Status: kustomizev1.KustomizationStatus{Conditions: conditions}})
			} else {
				s.Source(&sourcev1.GitRepository{ObjectMeta: meta, Status: sourcev1.GitRepositoryStatus{Conditions: conditions}})
			}
			want := []situation.Problem{{State: situation.Failed, Kind: tc.kind, Namespace: "shop", Name: "web", Message: tc.message, Next: tc.want}}
			if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClusterIsLeftSlowly: slowed evictions are reported, with where to look.
func TestAClusterIsLeftSlowly(t *testing.T) {
	s := situation.NewSurvey(now, "")
	c := member("east")
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionEvictionSlowed, Status: metav1.ConditionTrue,
		Message: "8 of 9 templates are not healthy where they were moved to, such as Deployment shop/web: no more than 1 in a second are moved until they are",
	})
	s.Cluster(c, time.Time{})
	want := []situation.Problem{{
		State: situation.Progressing, Kind: "Cluster", Name: "east",
		Message: "what runs there is moved off slowly: 8 of 9 templates are not healthy where they were moved to, such as Deployment shop/web: no more than 1 in a second are moved until they are",
		Next:    "see what keeps them from being healthy: flotilla explain deployment/web -n shop; the rate rises by itself once they are",
	}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestManyClustersLost: each cluster is reported with why nothing is moved off it, and how to confirm its loss.
func TestManyClustersLost(t *testing.T) {
	s := situation.NewSurvey(now, "")
	c := member("east")
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue,
		Message: "2 of 3 clusters were lost at once: east, west: nothing is moved off them, as it may be the control plane that sees nothing. If east is lost: flotilla confirm",
	})
	s.Cluster(c, time.Time{})
	got := slices.DeleteFunc(s.Fleet().Problems, func(p situation.Problem) bool { return p.Kind != "Cluster" })
	want := []situation.Problem{{
		State: situation.Failed, Kind: "Cluster", Name: "east", Next: "if east is lost: flotilla confirm",
		Message: "2 of 3 clusters were lost at once: east, west: nothing is moved off them, as it may be the control plane that sees nothing",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestOneOfManyLostClustersIsOneProblem: that nothing is moved off a lost cluster belongs to its loss.
func TestOneOfManyLostClustersIsOneProblem(t *testing.T) {
	s := situation.NewSurvey(now, "")
	c := member("east")
	c.Status.Conditions = []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, Message: "no answer"},
		{
			Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue,
			Message: "2 of 3 clusters were lost at once: east, west: nothing is moved off them, as it may be the control plane that sees nothing. If east is lost: flotilla confirm",
		},
	}
	s.Cluster(c, time.Time{})
	want := []situation.Problem{{
		State: situation.Failed, Kind: "Cluster", Name: "east", Message: "nothing is moved off it, as 2 of 3 clusters were lost at once; no answer",
		Next: "see whether east is up and accepts the fleet's credentials: flotilla describe cluster east; if east is lost: flotilla confirm",
	}}
	if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
