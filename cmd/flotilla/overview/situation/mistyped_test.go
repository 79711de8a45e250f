package situation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// naming returns a policy that names a Deployment and selects nothing.
func naming(name, deployment string) *policyv1alpha1.PropagationPolicy {
	p := carrying(name, 0)
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: deployment}}
	return p
}

// bindingOf returns the binding of a Deployment that runs in a cluster and has no policy.
func bindingOf(deployment string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = "shop", deployment+"-deployment"
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: deployment}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	return b
}

// A policy that selects nothing is reported with the workload that it may mean, in whatever order they
// are added.
func TestWhatAPolicyMayMean(t *testing.T) {
	note := func(policy, message, next string) situation.Note {
		return situation.Note{Kind: "PropagationPolicy", Namespace: "shop", Name: policy, Message: message, Next: next}
	}
	nothing := func(policy string) situation.Note {
		return note(policy, "it carries nothing: there is no object that its selectors mean, or another policy carries it",
			"compare its resourceSelectors with what there is; flotilla explain KIND/NAME says why an object is not carried")
	}
	means := func(policy, written, meant string) situation.Note {
		return note(policy, "it carries nothing: it names Deployment "+written+" (did you mean Deployment "+meant+"?)", "correct the name in its resourceSelectors")
	}
	everywhere := &policyv1alpha1.ClusterPropagationPolicy{}
	carrying("typo", 0).ObjectMeta.DeepCopyInto(&everywhere.ObjectMeta)
	everywhere.Namespace, everywhere.Status = "", carrying("typo", 0).Status
	everywhere.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "frnotend"}}
	wide := means("typo", "frnotend", "shop/frontend")
	wide.Kind, wide.Namespace = "ClusterPropagationPolicy", ""
	labelled := carrying("typo", 0)
	labelled.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	other := naming("typo", "frontent")
	other.Spec.ResourceSelectors[0].Kind = "StatefulSet"
	madeName := workv1alpha2.PolicyName(appsv1.SchemeGroupVersion.WithKind("Deployment"), "shop", "typo")
	made, another := naming(madeName, "typo"), naming(madeName, "other")
	cases := map[string]struct {
		policy    policyv1alpha1.Policy
		workloads []string
		carried   string
		released  string
		want      situation.Note
	}{
		"a letter is wrong":           {policy: naming("typo", "frontent"), workloads: []string{"checkout", "frontend"}, want: means("typo", "shop/frontent", "shop/frontend")},
		"the nearest is meant":        {policy: naming("typo", "frontent"), workloads: []string{"frntend", "frontend"}, want: means("typo", "shop/frontent", "shop/frontend")},
		"two are as near":             {policy: naming("typo", "frontent"), workloads: []string{"frontenx", "frontend"}, want: means("typo", "shop/frontent", "shop/frontend")},
		"a policy of the whole fleet": {policy: everywhere, workloads: []string{"frontend"}, want: wide},
		"it runs on as it was":        {policy: naming("typo", "frontent"), released: "frontend", want: means("typo", "shop/frontent", "shop/frontend")},
		"nothing is near":             {policy: naming("typo", "cart"), workloads: []string{"frontend"}, want: nothing("typo")},
		"what it names is carried":    {policy: naming("typo", "frontent"), workloads: []string{"frontend"}, carried: "frontent", want: nothing("typo")},
		"it names another kind":       {policy: other, workloads: []string{"frontend"}, want: nothing("typo")},
		"it names nothing":            {policy: labelled, workloads: []string{"frontend"}, want: nothing("typo")},
		"a command made it for what is gone": {policy: made, want: note(madeName, "it carries nothing: there is no object that its selectors mean, or another policy carries it",
			"a command made it for Deployment typo: if that is gone for good, flotilla delete propagationpolicy "+madeName+" -n shop")},
		"its name is that of another one": {policy: another, want: nothing(madeName)},
		"there is what it names itself":   {policy: naming("typo", "frontend"), workloads: []string{"frontend", "frontends"}, want: nothing("typo")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			if tc.carried != "" {
				b := bindingOf(tc.carried)
				propagation.ClaimOf(carrying("web", 1)).Set(b)
				s.Binding(b, nil)
			}
			if tc.released != "" {
				s.Binding(bindingOf(tc.released), nil)
			}
			s.Policy(tc.policy)
			for _, of := range tc.workloads {
				s.Workload(workload("shop", of))
			}
			notes := s.Fleet().Notes
			for _, got := range notes {
				if got.Name == tc.want.Name {
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					return
				}
			}
			t.Errorf("nobody is told: %+v", notes)
		})
	}
}

// TestAPolicyWhoseStatusIsBehind: what has a policy's claim is carried by it, whatever its own status says yet.
func TestAPolicyWhoseStatusIsBehind(t *testing.T) {
	claimed := workload("shop", "frontend")
	propagation.ClaimOf(carrying("production", 0)).Set(claimed)
	for name, tc := range map[string]struct {
		add  func(s *situation.Survey)
		want []string
	}{
		"nothing has its claim": {func(*situation.Survey) {}, []string{"it carries nothing: there is no object that its selectors mean, or another policy carries it"}},
		"a binding has": {func(s *situation.Survey) {
			b := bindingOf("frontend")
			propagation.ClaimOf(carrying("production", 0)).Set(b)
			s.Binding(b, nil)
		}, nil},
		"a template has that has no binding yet": {func(s *situation.Survey) { s.Workload(claimed) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			s.Policy(carrying("production", 0))
			tc.add(s)
			var got []string
			for _, n := range s.Fleet().Notes {
				got = append(got, n.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatRunsNowhereIsNotAmongWhatIsReady: the first line does not call all ready where a Deployment runs nowhere.
func TestWhatRunsNowhereIsNotAmongWhatIsReady(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	s.Workload(workload("shop", "web"))
	got, _, _ := strings.Cut(string(text(t, s.Fleet(), false)), ":")
	if want := "All that a policy carries is ready, but 1 thing is worth a look"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTwoTyposOfAPolicy: that a policy carries nothing is told beside the cluster that it mistypes, as soon as its
// condition says so, and also if what it means is carried by another one.
func TestTwoTyposOfAPolicy(t *testing.T) {
	p := naming("typo", "frontent")
	p.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Second))
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"est"}}
	p.Status.Conditions[0].Message = "it carries nothing: there is no object that its selectors mean, or another policy carries it; clusterNames names est, which does not exist (did you mean east?)"
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	b := bindingOf("frontend")
	propagation.ClaimOf(carrying("web", 1)).Set(b)
	s.Binding(b, nil)
	s.Policy(p)
	var got []string
	for _, n := range s.Fleet().Notes {
		got = append(got, n.Message)
	}
	want := []string{"clusterNames names est, which does not exist (did you mean east?)", "it carries nothing: it names Deployment shop/frontent (did you mean Deployment shop/frontend?)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A policy that selects one of two names gets a suggestion for the other, if no policy selects that object.
func TestOneOfTheNamesOfAPolicyIsMistyped(t *testing.T) {
	for name, tc := range map[string]struct {
		carried, there []string
		want           string // empty for nothing
	}{
		"nobody carries what it may mean":  {carried: []string{"backend"}, there: []string{"frontend"}, want: "it names Deployment shop/frontent, which does not exist (did you mean Deployment shop/frontend?)"},
		"another carries what is like it":  {carried: []string{"backend", "frontend"}},
		"what it names is there":           {carried: []string{"backend", "frontent"}, there: []string{"frontend"}},
		"nothing that is there is like it": {carried: []string{"backend"}, there: []string{"database"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := naming("typo", "frontent")
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, naming("", "backend").Spec.ResourceSelectors...)
			p.Status.Templates = 1
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			for _, of := range tc.carried {
				b := bindingOf(of)
				propagation.ClaimOf(carrying("web", 1)).Set(b)
				s.Binding(b, nil)
			}
			s.Policy(p)
			for _, of := range tc.there {
				s.Workload(workload("shop", of))
			}
			got := ""
			for _, n := range s.Fleet().Notes {
				if n.Name == "typo" {
					got += n.Message
				}
			}
			if got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// Workloads that no policy selects are counted, and sorted with the numbers in their names.
func TestManyWorkloadsThatNoPolicyCarries(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("east"), time.Time{})
	for i := range 201 {
		s.Workload(workload("shop", fmt.Sprint("web-", (i*37)%201+1)))
	}
	want := []situation.Note{{
		Message: "201 workloads are carried by no policy, so that they run nowhere: Deployment shop/web-1, Deployment shop/web-2, Deployment shop/web-3 and 198 more",
		Next:    "flotilla explain deployment/web-1 -n shop",
	}}
	if diff := cmp.Diff(want, s.Fleet().Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnOverrideThatNamesNoObject: the suggestion is an existing object of the same kind and
// namespace.
func TestAnOverrideThatNamesNoObject(t *testing.T) {
	names := func(names ...string) *policyv1alpha1.OverridePolicy {
		o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
		for _, name := range names {
			o.Spec.ResourceSelectors = append(o.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name})
		}
		return o
	}
	for name, tc := range map[string]struct {
		override *policyv1alpha1.OverridePolicy
		want     string // empty for nothing
	}{
		"a letter is too much":      {names("frontendd"), "it names Deployment frontendd, which does not exist (did you mean Deployment shop/frontend?)"},
		"it is there":               {names("frontend"), ""},
		"one of two is mistyped":    {names("frontend", "bakend"), "it names Deployment bakend, which does not exist (did you mean Deployment shop/backend?)"},
		"nothing is like it":        {names("database"), ""},
		"it names none":             {names(""), ""},
		"it is yet to be carried":   {names("waiting"), ""},
		"it is like one of another": {&policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "o"}, Spec: names("frontendd").Spec}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			s.Cluster(member("east"), time.Time{})
			for _, name := range []string{"frontend", "backend"} {
				b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}}
				b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
				propagation.ClaimOf(carrying("web", 1)).Set(b)
				s.Binding(b, nil)
			}
			s.Workload(workload("shop", "waiting"))
			s.Override(tc.override)
			got := ""
			for _, n := range s.Fleet().Notes {
				if n.Kind == "OverridePolicy" {
					got += n.Message
				}
			}
			if got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// TestExcludedByAMistypedName: a policy or an override excludes a cluster by a mistyped name, and so does not exclude it.
func TestExcludedByAMistypedName(t *testing.T) {
	s := situation.NewSurvey(now, "")
	s.Cluster(member("west"), time.Time{})
	p := carrying("web", 1, "west")
	p.Spec.Placement.ClusterAffinity.ExcludeClusters = []string{"wets", "mars"}
	s.Policy(p)
	o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "images"}}
	o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{TargetCluster: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"wst"}}}}
	s.Override(o)
	var got []string
	for _, n := range s.Fleet().Notes {
		got = append(got, n.Kind+": "+n.Message)
	}
	want := []string{"OverridePolicy: exclude names wst, which does not exist (did you mean west?)", "PropagationPolicy: exclude names wets, which does not exist (did you mean west?)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
