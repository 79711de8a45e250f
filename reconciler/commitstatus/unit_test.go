package commitstatus

import (
	"cmp"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/forge"
)

func TestSelects(t *testing.T) {
	cases := map[string]struct {
		ref     notificationv1.CrossNamespaceObjectReference
		suspend bool
		want    bool
	}{
		"by name":                       {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "shop"}, want: true},
		"by name and own namespace":     {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "shop", Namespace: "team"}, want: true},
		"all":                           {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "*"}, want: true},
		"all with a label":              {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"tier": "web"}}, want: true},
		"not all with another label":    {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"tier": "db"}}},
		"not another name":              {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "web"}},
		"not another namespace":         {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "shop", Namespace: "other"}},
		"not another kind":              {ref: notificationv1.CrossNamespaceObjectReference{Kind: "GitRepository", Name: "shop"}},
		"not while the Alert is asleep": {ref: notificationv1.CrossNamespaceObjectReference{Kind: "Kustomization", Name: "shop"}, suspend: true},
	}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", Labels: map[string]string{"tier": "web"}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			alert := &notificationv1beta3.Alert{Spec: notificationv1beta3.AlertSpec{Suspend: tc.suspend, EventSources: []notificationv1.CrossNamespaceObjectReference{tc.ref}}}
			if got := selects(alert, ks); got != tc.want {
				t.Errorf("selects = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestPosts: what asks for messages is left alone, and what is taken package forge can post to.
func TestPosts(t *testing.T) {
	addresses := map[string]string{
		"bitbucket": "https://bitbucket.org/acme/fleet", "bitbucketserver": "https://git.test/scm/acme/fleet.git",
		"azuredevops": "https://dev.azure.com/acme/shop/_git/fleet",
	}
	cases := map[string]bool{
		"github": true, "gitlab": true, "gitea": true, "bitbucket": true, "bitbucketserver": true, "azuredevops": true, "git-notes": true,
		"githubpullrequestcomment": true, "gitlabmergerequestcomment": true, "giteapullrequestcomment": true,
		"githubdispatch": false, "azureeventhub": false, "slack": false, "generic": false,
	}
	for kind, want := range cases {
		provider := &notificationv1beta3.Provider{Spec: notificationv1beta3.ProviderSpec{Type: kind}}
		if got := Posts(provider); got != want {
			t.Errorf("%s: Posts = %t, want %t", kind, got, want)
		}
		address := cmp.Or(addresses[kind], "https://git.test/acme/fleet")
		to := forge.Provider{Type: kind, Address: address, Secret: map[string][]byte{"token": []byte("t")}}
		_, err := forge.New(to, forge.Options{})
		if forge.Comments(kind) {
			_, err = forge.NewCommenter(to, forge.Options{})
		}
		if (err == nil) != want {
			t.Errorf("%s: forge.New: error = %v, want that it posts: %t", kind, err, want)
		}
		provider.Spec.Suspend = true
		if Posts(provider) {
			t.Errorf("%s: Posts = true while it is suspended", kind)
		}
	}
}

func TestJudgement(t *testing.T) {
	const rev, old = "main@sha1:aaaa", "main@sha1:bbbb"
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	running := []rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{{Name: "east"}}}}
	rolling := []rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{{Name: "east", State: rollup.Progressing, Reason: "not ready 1/2"}}}}
	cases := map[string]struct {
		conditions []metav1.Condition
		applied    string
		tried      string // last, by its history; empty: it has none
		generation int64  // beyond the one that was observed
		suspended  bool
		outside    bool
		since      bool // what is refused was asked for since
		parts      []rollup.Part
		wantState  gitopsv1alpha1.CommitState
		wantText   string
	}{
		"not looked at yet": {wantState: gitopsv1alpha1.CommitPending, wantText: "waiting to be applied"},
		"being applied": {
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Progressing", "Applying revision x")},
			wantState:  gitopsv1alpha1.CommitPending, wantText: "Applying revision x",
		},
		"something is deleted again and again": {
			conditions: []metav1.Condition{condition("Ready", "False", "DeletedAgain", "ConfigMap/team/a is not there")}, applied: rev,
			wantState: gitopsv1alpha1.CommitPending, wantText: "ConfigMap/team/a is not there",
		},
		"waits for another": {
			conditions: []metav1.Condition{condition("Ready", "False", "DependencyNotReady", "dependency a/b is not ready")},
			wantState:  gitopsv1alpha1.CommitPending, wantText: "dependency a/b is not ready",
		},
		"stands, and its dependency has failed since": {
			conditions: []metav1.Condition{condition("Ready", "False", "DependencyNotReady", "dependency a/b is not ready")}, applied: rev,
			parts: running, wantState: gitopsv1alpha1.CommitSuccess, wantText: "1/1 clusters ready",
		},
		"another spec than the one that stands waits": {
			conditions: []metav1.Condition{condition("Ready", "False", "DependencyNotReady", "dependency a/b is not ready")}, applied: rev, generation: 2,
			parts: running, wantState: gitopsv1alpha1.CommitPending, wantText: "dependency a/b is not ready",
		},
		"it waits after another revision was tried": {
			conditions: []metav1.Condition{condition("Ready", "False", "DependencyNotReady", "dependency a/b is not ready")}, applied: rev, tried: old,
			parts: running, wantState: gitopsv1alpha1.CommitPending, wantText: "dependency a/b is not ready",
		},
		"a fault that may pass": {
			conditions: []metav1.Condition{condition("Ready", "False", "ReconciliationFailed", "timeout")},
			wantState:  gitopsv1alpha1.CommitPending, wantText: "timeout",
		},
		"refused": {
			conditions: []metav1.Condition{condition("Ready", "False", "BuildFailed", "app/x.yaml: broken")},
			wantState:  gitopsv1alpha1.CommitError, wantText: "BuildFailed: app/x.yaml: broken",
		},
		"its folder is not there": {
			conditions: []metav1.Condition{condition("Ready", "False", "PathNotFound", `spec.path "./new": path not found`)}, applied: old,
			wantState: gitopsv1alpha1.CommitError, wantText: `PathNotFound: spec.path "./new": path not found`,
		},
		"it stands, and a folder that only a later commit has is asked for since": {
			conditions: []metav1.Condition{condition("Ready", "False", "PathNotFound", `spec.path "./new": path not found`)}, applied: rev, since: true,
			wantState: gitopsv1alpha1.CommitPending, wantText: `PathNotFound: spec.path "./new": path not found`,
		},
		"it stands, and names a folder itself that it does not have": {
			conditions: []metav1.Condition{condition("Ready", "False", "PathNotFound", `spec.path "./new": path not found`)}, applied: rev,
			wantState: gitopsv1alpha1.CommitError, wantText: `PathNotFound: spec.path "./new": path not found`,
		},
		"it stands, and something else is wrong since": {
			conditions: []metav1.Condition{condition("Ready", "False", "BuildFailed", "app/x.yaml: broken")}, applied: rev,
			wantState: gitopsv1alpha1.CommitError, wantText: "BuildFailed: app/x.yaml: broken",
		},
		"applied and running": {
			conditions: []metav1.Condition{condition("Ready", "True", "ReconciliationSucceeded", "Applied")}, applied: rev,
			parts: running, wantState: gitopsv1alpha1.CommitSuccess, wantText: "1/1 clusters ready",
		},
		"applied and rolling": {
			conditions: []metav1.Condition{condition("Ready", "True", "ReconciliationSucceeded", "Applied")}, applied: rev,
			parts: rolling, wantState: gitopsv1alpha1.CommitPending, wantText: "0/1 clusters ready: east waits for Deployment shop/web 1/2",
		},
		"applied, with nothing for clusters": {
			conditions: []metav1.Condition{condition("Ready", "True", "ReconciliationSucceeded", "Applied")}, applied: rev,
			wantState: gitopsv1alpha1.CommitSuccess, wantText: "applied 3 objects on the control plane, none of which goes to a cluster",
		},
		"applied in a cluster outside of the fleet": {
			conditions: []metav1.Condition{condition("Ready", "True", "ReconciliationSucceeded", "Applied")}, applied: rev, outside: true,
			wantState: gitopsv1alpha1.CommitSuccess, wantText: "applied in the cluster of the Secret prod, outside of the fleet",
		},
		"waits for health in a cluster outside of the fleet": {
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Progressing", "Running health checks"), condition("Healthy", "Unknown", "Progressing", "Running health checks")},
			applied:    old, outside: true, wantState: gitopsv1alpha1.CommitPending, wantText: "applied in the cluster of the Secret prod, outside of the fleet; Running health checks",
		},
		"took too long in a cluster outside of the fleet": {
			conditions: []metav1.Condition{condition("Ready", "False", "HealthCheckFailed", "health check failed after 5m")},
			applied:    old, outside: true, wantState: gitopsv1alpha1.CommitFailure, wantText: "health check failed after 5m",
		},
		"waits for health": {
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Progressing", "Running health checks"), condition("Healthy", "Unknown", "Progressing", "Running health checks")},
			applied:    old, parts: rolling, wantState: gitopsv1alpha1.CommitPending, wantText: "0/1 clusters ready: east waits for Deployment shop/web 1/2",
		},
		"waits for health on the hub alone": {
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Progressing", "Running health checks"), condition("Healthy", "Unknown", "Progressing", "Running health checks")},
			applied:    old, parts: running, wantState: gitopsv1alpha1.CommitPending, wantText: "1/1 clusters ready; Running health checks",
		},
		"is suspended while health is waited for, and runs": {
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Progressing", "Running health checks"), condition("Healthy", "Unknown", "Progressing", "Running health checks")},
			applied:    old, suspended: true, parts: running, wantState: gitopsv1alpha1.CommitSuccess, wantText: "1/1 clusters ready",
		},
		"is suspended while health is waited for, and rolls out": {
			conditions: []metav1.Condition{condition("Ready", "Unknown", "Progressing", "Running health checks"), condition("Healthy", "Unknown", "Progressing", "Running health checks")},
			applied:    old, suspended: true, parts: rolling, wantState: gitopsv1alpha1.CommitPending, wantText: "0/1 clusters ready: east waits for Deployment shop/web 1/2",
		},
		"took too long, is suspended, and runs": {
			conditions: []metav1.Condition{condition("Ready", "False", "HealthCheckFailed", "health check failed after 5m")},
			applied:    old, suspended: true, parts: running, wantState: gitopsv1alpha1.CommitSuccess, wantText: "1/1 clusters ready",
		},
		"took too long": {
			conditions: []metav1.Condition{condition("Ready", "False", "HealthCheckFailed", "health check failed after 5m")},
			applied:    old, parts: rolling, wantState: gitopsv1alpha1.CommitFailure, wantText: "0/1 clusters ready: east waits for Deployment shop/web 1/2",
		},
		"took too long on the hub alone": {
			conditions: []metav1.Condition{condition("Ready", "False", "HealthCheckFailed", "health check failed after 5m")},
			applied:    old, parts: running, wantState: gitopsv1alpha1.CommitFailure, wantText: "health check failed after 5m",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{Conditions: tc.conditions, LastAttemptedRevision: rev, LastAppliedRevision: tc.applied}}
			ks.Generation, ks.Spec.Suspend = tc.generation, tc.suspended
			if tc.tried != "" {
				ks.Status.History = meta.History{{Metadata: map[string]string{"revision": tc.tried}}}
			}
			if tc.outside {
				ks.Status.History = meta.History{{}}
				inventory.RecordPlace(&ks.Status, inventory.Place{Server: "https://prod", Secret: "prod"})
			}
			state, text := byConditions(ks, tc.since)
			if state == "" {
				state, text = byRollup(ks, rollup.Revision(tc.parts), len(tc.parts), 3)
			}
			if state != tc.wantState || text != tc.wantText {
				t.Errorf("judged %s %q, want %s %q", state, text, tc.wantState, tc.wantText)
			}
		})
	}
}

// TestWhatIsNotKnownTakesNothingBack: after a restart a commit that was told to have
// succeeded is not pending until all of it has been looked at.
func TestWhatIsNotKnownTakesNothingBack(t *testing.T) {
	cases := map[string]struct {
		reported gitopsv1alpha1.CommitState
		commit   string
		unknown  bool
		replaced bool
		want     bool
	}{
		"it has succeeded":       {reported: gitopsv1alpha1.CommitSuccess, commit: "a", unknown: true, want: true},
		"it has failed":          {reported: gitopsv1alpha1.CommitFailure, commit: "a", unknown: true, want: true},
		"it was pending":         {reported: gitopsv1alpha1.CommitPending, commit: "a", unknown: true},
		"that was another":       {reported: gitopsv1alpha1.CommitSuccess, commit: "b", unknown: true},
		"all is known meanwhile": {reported: gitopsv1alpha1.CommitSuccess, commit: "a"},
		"it has succeeded, and the next one is on its way": {reported: gitopsv1alpha1.CommitSuccess, commit: "a", replaced: true, want: true},
		"it was pending, and the next one is on its way":   {reported: gitopsv1alpha1.CommitPending, commit: "a", replaced: true, want: true},
		"that was another, and the next one is on its way": {reported: gitopsv1alpha1.CommitSuccess, commit: "b", replaced: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reported := &gitopsv1alpha1.CommitStatus{Spec: gitopsv1alpha1.CommitStatusSpec{Commit: tc.commit, State: tc.reported}}
			if got := stands(reported, verdict{state: gitopsv1alpha1.CommitPending, unknown: tc.unknown, replaced: tc.replaced}, "a"); got != tc.want {
				t.Errorf("stands = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestContext(t *testing.T) {
	cases := map[string]struct {
		expr, want, wantErr string
	}{
		"as Flux names it":   {want: "kustomization/shop/1a2b3c4d"},
		"by an expression":   {expr: "event.involvedObject.namespace + '/' + event.involvedObject.name + '/' + provider.metadata.name + '/' + alert.metadata.name", want: "team/shop/forge/all"},
		"not a string":       {expr: "1", wantErr: "provider forge: spec.commitStatusExpr: "},
		"nothing":            {expr: "''", wantErr: "gives 0 characters"},
		"does not parse":     {expr: "(", wantErr: "provider forge: spec.commitStatusExpr: "},
		"an unknown field":   {expr: "event.nothing", wantErr: "there is no nothing"},
		"an unknown subject": {expr: "object.name", wantErr: "undeclared reference"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "Shop"}}
			if tc.expr != "" {
				ks.Name = "shop"
			}
			to := target{
				provider: &notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Name: "forge", UID: "1A2B3C4D-0000-1111-2222-333333333333"}, Spec: notificationv1beta3.ProviderSpec{CommitStatusExpr: tc.expr}},
				alert:    &notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Name: "all"}},
			}
			got, err := contextOf(t.Context(), expression.NewCompiler(expression.Limits{}), ofKustomization(ks, to), to, verdict{state: gitopsv1alpha1.CommitPending})
			if got != tc.want {
				t.Errorf("context = %q, want %q", got, tc.want)
			}
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
		})
	}
}

func TestNamesAndAddresses(t *testing.T) {
	if a, b := statusName("a-b", "c"), statusName("a", "b-c"); a == b {
		t.Errorf("two pairs share the name %s", a)
	}
	if got := statusName(strings.Repeat("x", 253), strings.Repeat("y", 253)); len(got) > 253 {
		t.Errorf("the name has %d characters", len(got))
	}
	for address, want := range map[string]string{
		"https://git.example.com/acme/fleet":          "https://git.example.com/acme/fleet",
		"https://user:secret@git.example.com/acme":    "https://git.example.com/acme",
		"https://secret@git.example.com/acme":         "https://git.example.com/acme",
		"ssh://git@git.example.com:22/acme/fleet.git": "ssh://git@git.example.com:22/acme/fleet.git",
		"ssh://git:secret@git.example.com/acme":       "ssh://git@git.example.com/acme",
		"https://git.example.com":                     "https://git.example.com",
		"":                                            "",
	} {
		if got := withoutUser(address); got != want {
			t.Errorf("withoutUser(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestACommitNeedNotNameItself: the hash of the commit that a text stands at takes the room of what is wrong.
func TestACommitNeedNotNameItself(t *testing.T) {
	const own, other = "main@sha1:9f2c4d1e0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d", "main@sha1:1111111111111111111111111111111111111111"
	for text, want := range map[string]string{
		"PruneBlocked: revision " + own + " would remove 2 of 7 objects": "PruneBlocked: this commit would remove 2 of 7 objects",
		other + " takes its place":                                       "main@sha1:11111111 takes its place",
		"revision " + other + " stays":                                   "revision main@sha1:11111111 stays",
		"2/3 clusters ready":                                             "2/3 clusters ready",
	} {
		if got := ofThis(text, own); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestACommitSaysWhatAllowsIt: the line that lets go what the brake holds is worth more than the words before it.
func TestACommitSaysWhatAllowsIt(t *testing.T) {
	const own = "main@sha1:9f2c4d1e0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d"
	refusal := func(names string) string {
		return "PruneBlocked: revision " + own + " would remove 1 of 9 objects (Namespace/shop with 5 objects): nothing was applied;\ncommit it again, or allow it with " +
			inventory.HowToAllow(names, inventory.Allowance{}.Trailer([]string{names}))
	}
	for text, want := range map[string]string{
		refusal("namespace/shop"): "PruneBlocked: this commit would remove 1 of 9 objects (Namespace/shop with 5 objects): nothing was ap… Flotilla-Allow-Delete: namespace/shop",
		refusal("persistentvolumeclaim/shop/the-data-of-all-customers"): "PruneBlocked: this commit would remove 1 of 9 objects (Namespace/shop with 5 objects): nothing was applied; commit it again, or allow it wi…",
		"2/3 clusters ready": "2/3 clusters ready",
	} {
		if got := describe(text, own, "github"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	whole := "PruneBlocked: this commit would remove 1 of 9 objects (Namespace/shop with 5 objects): nothing was applied; commit it again, or allow it with "
	for names, ends := range map[string]string{"namespace/shop": "Flotilla-Allow-Delete: namespace/shop", "persistentvolumeclaim/shop/the-data-of-all-customers": "Flotilla-Allow-Delete: persistentvolumeclaim/shop/the-data-of-all-customers"} {
		if got := describe(refusal(names), own, gitopsv1alpha1.ProviderTypeGitNotes); !strings.HasPrefix(got, whole) || !strings.HasSuffix(got, ends) {
			t.Errorf("a note says %q", got)
		}
	}
}

// TestWhichCommitIsReportedToATarget: of the one that changed something, and never of one that is older than the last reported.
func TestWhichCommitIsReportedToATarget(t *testing.T) {
	const first, second, third = "main@sha1:1111111111111111111111111111111111111111", "main@sha1:2222222222222222222222222222222222222222", "main@sha1:3333333333333333333333333333333333333333"
	for name, tc := range map[string]struct {
		have, at, changed string
		all               bool
		want              string
	}{
		"it is new":                              {at: second, changed: first, want: second},
		"the commit changes something":           {have: first, at: second, changed: second, want: second},
		"the commit changes nothing":             {have: first, at: second, changed: first, want: first},
		"all are asked for":                      {have: first, at: second, changed: first, all: true, want: second},
		"it was told of one that was only tried": {have: second, at: third, changed: first, want: third},
		"what changed it is not known":           {have: first, at: second, want: second},
	} {
		t.Run(name, func(t *testing.T) {
			var have *gitopsv1alpha1.CommitStatus
			if tc.have != "" {
				have = &gitopsv1alpha1.CommitStatus{Spec: gitopsv1alpha1.CommitStatusSpec{Commit: commitOf(tc.have)}}
			}
			alert := &notificationv1beta3.Alert{}
			if tc.all {
				alert.Annotations = map[string]string{gitopsv1alpha1.CommitStatusesAnnotation: gitopsv1alpha1.CommitStatusesAll}
			}
			if got := (verdict{revision: tc.at, changed: tc.changed}).revisionFor(target{alert: alert}, have, commitOf(tc.changed)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
