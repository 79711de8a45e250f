package agents

import (
	"errors"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

func TestJudge(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	pull := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: clusterv1alpha1.Pull}}
	push := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{ID: "id-1", SyncMode: clusterv1alpha1.Push}}
	going := pull.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	twin := func(mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "south"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	}
	registering := func(id string, since time.Time) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			identity.ClusterIDAnnotation: id, identity.NotBeforeAnnotation: since.Format(time.RFC3339),
		}}}
	}
	registered := func(by string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{identity.RegisteredByAnnotation: by}}}
	}
	const anyToken, bound, itself, expired, other = "any token", "bound token", "itself", "expired", "other"
	who := map[string]requester{
		anyToken:    requesterOf("system:bootstrap:abcdef", []string{identity.TokensGroup}, "north"),
		bound:       requesterOf("system:bootstrap:abcdef", []string{identity.TokensGroup, identity.ClusterGroup("north")}, "north"),
		itself:      requesterOf(identity.Agent("north"), []string{identity.AgentsGroup}, "north"),
		expired:     requesterOf(identity.ExpiredAgent("north"), []string{identity.ExpiredAgentsGroup}, "north"),
		other:       requesterOf("jane", nil, "north"),
		"south":     requesterOf(identity.Agent("south"), []string{identity.AgentsGroup}, "north"),
		"for south": requesterOf("system:bootstrap:abcdef", []string{identity.TokensGroup, identity.ClusterGroup("south")}, "north"),
		"for id-1":  requesterOf("system:bootstrap:abcdef", []string{identity.TokensGroup, identity.ClusterGroup("north"), identity.IDGroup("ID-1")}, "north"),
	}
	byA := who[itself]
	byA.registration = "a"
	who["registered by a"] = byA
	cases := map[string]struct {
		by, id string
		facts  facts
		says   string // empty: it is approved
		open   bool   // it is left to a person
	}{
		"a new cluster":                        {by: anyToken, id: "id-1", facts: facts{allowed: true}},
		"a new cluster that says nothing":      {by: anyToken, facts: facts{allowed: true}},
		"a Secret that is not the cluster's":   {by: bound, id: "id-1", facts: facts{allowed: true, secret: "north-impersonator"}, says: "has a Secret north-impersonator of its own: choose another name than north"},
		"a token without the group":            {by: anyToken, says: "it lacks the group system:bootstrappers:karmada:default-cluster-token"},
		"a token of another cluster":           {by: "for south", facts: facts{allowed: true}, says: "good for the cluster south alone"},
		"a used token":                         {by: bound, facts: facts{allowed: true, usedBy: "another"}, says: "has been used"},
		"a token that is gone":                 {by: bound, facts: facts{allowed: true, spent: true}, says: "has been used"},
		"a token that is used for the same":    {by: bound, facts: facts{allowed: true, usedBy: "this"}},
		"the cluster that was meant":           {by: "for id-1", id: "id-1", facts: facts{allowed: true}},
		"another cluster than was meant":       {by: "for id-1", id: "id-2", facts: facts{allowed: true}, says: "good for the cluster with the id id-1, this one has id-2"},
		"a cluster that hides its id":          {by: "for id-1", facts: facts{allowed: true}, says: "this one has none"},
		"a name that is registered":            {by: anyToken, id: "id-1", facts: facts{allowed: true, cluster: pull}, says: "is registered already: flotilla token create --cluster-name north"},
		"a cluster that is registered anew":    {by: bound, id: "id-1", facts: facts{allowed: true, cluster: pull}},
		"a name that another cluster has":      {by: bound, id: "id-2", facts: facts{allowed: true, cluster: pull}, says: "is taken by another cluster, with the id id-1"},
		"a cluster that has another name":      {by: bound, id: "id-1", facts: facts{allowed: true, twin: twin(clusterv1alpha1.Pull)}, says: "this cluster is registered as south: flotilla unregister south removes it"},
		"a cluster that has joined by push":    {by: bound, id: "id-1", facts: facts{allowed: true, twin: twin(clusterv1alpha1.Push)}, says: "this cluster is registered as south: flotilla unjoin south removes it"},
		"a cluster in push mode":               {by: bound, id: "id-1", facts: facts{allowed: true, cluster: push}, says: "flotilla unjoin north removes it"},
		"a cluster that leaves":                {by: bound, id: "id-1", facts: facts{allowed: true, cluster: going}, says: "wait until it has left"},
		"a name that another registers under":  {by: anyToken, id: "id-2", facts: facts{allowed: true, role: registering("id-1", noon)}, says: "another cluster is registering as north"},
		"a registration that is tried again":   {by: anyToken, id: "id-1", facts: facts{allowed: true, role: registering("id-1", noon)}},
		"a registration that nobody followed":  {by: anyToken, id: "id-2", facts: facts{allowed: true, role: registering("id-1", noon.Add(-2*time.Hour))}},
		"the next certificate":                 {by: itself, facts: facts{allowed: true, cluster: pull}},
		"the next one while leaving":           {by: itself, facts: facts{allowed: true, cluster: going}},
		"the next one of another's":            {by: "south", facts: facts{allowed: true, cluster: pull}, says: "system:karmada:agent:south may ask for its own certificate"},
		"the next one of a removed cluster":    {by: itself, facts: facts{allowed: true}, says: "there is no cluster north any more"},
		"the next one of one in push mode":     {by: itself, facts: facts{allowed: true, cluster: push}, says: "has no agent"},
		"the next one of one that was rebuilt": {by: itself, id: "id-2", facts: facts{allowed: true, cluster: pull}, says: "is taken by another cluster"},
		"the next one where nobody may":        {by: itself, facts: facts{cluster: pull}, says: "bind the ClusterRole"},
		"an expired certificate":               {by: expired, facts: facts{allowed: true, cluster: pull}},
		"an expired one of a removed cluster":  {by: expired, facts: facts{allowed: true}, says: "there is no cluster north any more"},
		"an expired one of one that leaves":    {by: expired, facts: facts{allowed: true, cluster: going}, says: "is leaving the fleet"},
		"the next one of this registration":    {by: "registered by a", facts: facts{allowed: true, cluster: pull, role: registered("a")}},
		"the next one of an earlier one":       {by: "registered by a", facts: facts{allowed: true, cluster: pull, role: registered("b")}, says: "was registered anew since this was asked for"},
		"the next one, before that was noted":  {by: itself, facts: facts{allowed: true, cluster: pull, role: registering("id-1", noon)}},
		"an expired one of an earlier one":     {by: expired, facts: facts{allowed: true, cluster: pull, role: registered("b")}, says: "was registered anew since this was asked for"},
		"somebody who may":                     {by: other, facts: facts{allowed: true}},
		"somebody who may not":                 {by: other, open: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := judge(request{uid: "this", cluster: "north", id: tc.id, by: who[tc.by], now: noon}, tc.facts)
			switch {
			case errors.Is(err, errUndecided) != tc.open:
				t.Errorf("= %v", err)
			case tc.open:
			case tc.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}

func TestJudgeGenerator(t *testing.T) {
	tokenOf := func(groups ...string) identity.Token {
		token, _ := identity.TokenOf("system:bootstrap:abcdef", groups)
		return token
	}
	cases := map[string]struct {
		token identity.Token
		facts facts
		says  string
		open  bool
	}{
		"any token":                      {token: tokenOf(), facts: facts{allowed: true}},
		"a token of a cluster":           {token: tokenOf(identity.ClusterGroup("north")), facts: facts{allowed: true}},
		"a token without the group":      {token: tokenOf(), says: "it lacks the group"},
		"a token that was used":          {token: tokenOf(identity.ClusterGroup("north")), facts: facts{allowed: true, usedBy: "this"}, says: "has been used"},
		"a token that is gone":           {token: tokenOf(identity.ClusterGroup("north")), facts: facts{allowed: true, spent: true}, says: "has been used"},
		"who has come without":           {facts: facts{allowed: true}, open: true},
		"who has come without and right": {open: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := judgeGenerator(tc.token, tc.facts)
			switch {
			case tc.open != errors.Is(err, errUndecided):
				t.Errorf("= %v, want it open: %v", err, tc.open)
			case !tc.open && (err == nil) != (tc.says == "") || tc.says != "" && !strings.Contains(err.Error(), tc.says):
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}
