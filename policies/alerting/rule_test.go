package alerting_test

import (
	"strings"
	"testing"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

func alertOf(spec notificationv1beta3.AlertSpec) *notificationv1beta3.Alert {
	return &notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chat"}, Spec: spec}
}

func from(refs ...notificationv1.CrossNamespaceObjectReference) []notificationv1.CrossNamespaceObjectReference {
	return refs
}

func ref(kind, name string) notificationv1.CrossNamespaceObjectReference {
	return notificationv1.CrossNamespaceObjectReference{Kind: kind, Name: name}
}

func failure() alerting.Event {
	return alerting.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Kustomization", Namespace: "shop", Name: "web"},
		Severity:       alerting.Error, Reason: "BuildFailed", Message: "web.yaml: not found",
		Metadata: map[string]string{"revision": "main@sha1:9f2c4d1e"}, Labels: map[string]string{"tier": "web"},
	}
}

func TestWhatPasses(t *testing.T) {
	success := failure()
	success.Severity, success.Reason, success.Message = alerting.Info, "ReconciliationSucceeded", "Applied revision main@sha1:9f2c4d1e"
	elsewhere := ref("Kustomization", "*")
	elsewhere.Namespace = "infra"
	labelled, others := ref("Kustomization", "*"), ref("Kustomization", "*")
	labelled.MatchLabels, others.MatchLabels = map[string]string{"tier": "web"}, map[string]string{"tier": "db"}
	named := ref("Kustomization", "web")
	named.MatchLabels = map[string]string{"tier": "db"}
	all := from(ref("Kustomization", "*"))
	for name, tc := range map[string]struct {
		spec  notificationv1beta3.AlertSpec
		event alerting.Event
		scope alerting.Scope
		want  bool
	}{
		"all of a kind":                                     {spec: notificationv1beta3.AlertSpec{EventSources: all}, event: success, want: true},
		"one by its name":                                   {spec: notificationv1beta3.AlertSpec{EventSources: from(ref("Kustomization", "web"))}, event: success, want: true},
		"not another name":                                  {spec: notificationv1beta3.AlertSpec{EventSources: from(ref("Kustomization", "db"))}, event: success},
		"not another kind":                                  {spec: notificationv1beta3.AlertSpec{EventSources: from(ref("GitRepository", "*"))}, event: success},
		"by labels":                                         {spec: notificationv1beta3.AlertSpec{EventSources: from(labelled)}, event: success, want: true},
		"not by other labels":                               {spec: notificationv1beta3.AlertSpec{EventSources: from(others)}, event: success},
		"labels are for those without a name":               {spec: notificationv1beta3.AlertSpec{EventSources: from(named)}, event: success, want: true},
		"not of another namespace":                          {spec: notificationv1beta3.AlertSpec{EventSources: from(elsewhere)}, event: success},
		"nor may it name one":                               {spec: notificationv1beta3.AlertSpec{EventSources: from(elsewhere)}, event: in(success, "infra")},
		"unless an administrator allows it":                 {spec: notificationv1beta3.AlertSpec{EventSources: from(elsewhere)}, event: in(success, "infra"), scope: alerting.Scope{CrossNamespace: true}, want: true},
		"an info where errors are asked for":                {spec: notificationv1beta3.AlertSpec{EventSources: all, EventSeverity: "error"}, event: success},
		"an error where errors are asked for":               {spec: notificationv1beta3.AlertSpec{EventSources: all, EventSeverity: "error"}, event: failure(), want: true},
		"an error where infos are asked for":                {spec: notificationv1beta3.AlertSpec{EventSources: all, EventSeverity: "info"}, event: failure(), want: true},
		"what is included":                                  {spec: notificationv1beta3.AlertSpec{EventSources: all, InclusionList: []string{"^Applied"}}, event: success, want: true},
		"not what is not included":                          {spec: notificationv1beta3.AlertSpec{EventSources: all, InclusionList: []string{"^Applied"}}, event: failure()},
		"not what is excluded":                              {spec: notificationv1beta3.AlertSpec{EventSources: all, ExclusionList: []string{"not found"}}, event: failure()},
		"not what is included and excluded":                 {spec: notificationv1beta3.AlertSpec{EventSources: all, InclusionList: []string{"yaml"}, ExclusionList: []string{"not found"}}, event: failure()},
		"an expression that is none excludes nothing":       {spec: notificationv1beta3.AlertSpec{EventSources: all, ExclusionList: []string{"("}}, event: failure(), want: true},
		"an expression that is none includes nothing":       {spec: notificationv1beta3.AlertSpec{EventSources: all, InclusionList: []string{"("}}, event: failure()},
		"an expression that is too large excludes nothing":  {spec: notificationv1beta3.AlertSpec{EventSources: all, ExclusionList: []string{strings.Repeat("[a-z]{500}", 9) + "|.*"}}, event: failure(), want: true},
		"nothing, while the Alert is suspended":             {spec: notificationv1beta3.AlertSpec{EventSources: all, Suspend: true}, event: failure()},
		"nothing of kinds that have no Events here, anyhow": {spec: notificationv1beta3.AlertSpec{EventSources: from(ref("HelmRelease", "*"))}, event: of(failure(), "HelmRelease")},
	} {
		t.Run(name, func(t *testing.T) {
			rule := alerting.Compile(alertOf(tc.spec), tc.scope)
			if got := rule.Selects(tc.event) && rule.Passes(tc.event); got != tc.want {
				t.Errorf("passes: %t, want %t", got, tc.want)
			}
		})
	}
}

func in(e alerting.Event, namespace string) alerting.Event {
	e.InvolvedObject.Namespace = namespace
	return e
}

func of(e alerting.Event, kind string) alerting.Event {
	e.InvolvedObject.Kind = kind
	return e
}

// TestMetadata: what an Event tells by itself is never replaced, and there is an end to what is added.
func TestMetadata(t *testing.T) {
	rule := alerting.Compile(alertOf(notificationv1beta3.AlertSpec{
		EventMetadata: map[string]string{"revision": "mine", "env": "prod", "team": "a", "summary": "x", "long": strings.Repeat("é", 400), strings.Repeat("k", 65): "no room"},
		Summary:       "shop of <b>Europe</b>",
	}), alerting.Scope{})
	e := failure()
	e.Annotated = alerting.Annotated(map[string]string{"event.toolkit.fluxcd.io/env": "test", "event.toolkit.fluxcd.io/owner": "anna", "event.toolkit.fluxcd.io/": "none", "other": "none"})
	want := []alerting.Fact{
		{Key: "revision", Value: "main@sha1:9f2c4d1e"}, {Key: "summary", Value: "shop of <b>Europe</b>"}, {Key: "env", Value: "prod"},
		{Key: "long", Value: strings.Repeat("é", 254) + "…"}, {Key: "owner", Value: "anna"}, {Key: "team", Value: "a"},
	}
	if diff := cmp.Diff(want, rule.Of(e).Facts()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(failure().Metadata, e.Metadata); diff != "" {
		t.Errorf("the Event itself has changed (-want +got):\n%s", diff)
	}
}

func TestFaults(t *testing.T) {
	elsewhere := ref("Kustomization", "*")
	elsewhere.Namespace = "infra"
	alert := alertOf(notificationv1beta3.AlertSpec{
		EventSources:  from(ref("Kustomization", "*"), ref("HelmRelease", "web"), elsewhere),
		InclusionList: []string{".*", "a("}, ExclusionList: []string{"(a{500}){2}b{900}c{999}d{600}"},
	})
	kind := alerting.Fault{Path: "spec.eventSources[1].kind", Message: "HelmRelease is not served yet, and has no events: use GitRepository, OCIRepository, Bucket, ExternalArtifact, Kustomization"}
	namespace := alerting.Fault{Path: "spec.eventSources[2].namespace", Message: "infra is another namespace, of which nothing is told: put an Alert and a Provider there, or have an administrator allow it with --allow-cross-namespace-references"}
	for name, tc := range map[string]struct {
		scope   alerting.Scope
		purpose alerting.Purpose
		want    []alerting.Fault
	}{
		"of an Alert for messages": {purpose: alerting.Messages, want: []alerting.Fault{kind, namespace,
			{Path: "spec.inclusionList[1]", Message: `"a(" counts for nothing, as it is no regular expression: missing closing )`},
			{Path: "spec.exclusionList[0]", Message: `"(a{500}){2}b{900}c{999}d{600}" counts for nothing, as it is too large a regular expression: use a shorter one, or a smaller number of repetitions`},
		}},
		"of one for commits": {purpose: alerting.Commits, scope: alerting.Scope{CrossNamespace: true}, want: []alerting.Fault{kind}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, alerting.OfAlert(alert, tc.scope, tc.purpose)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfProviders(t *testing.T) {
	for kind, want := range map[string][]alerting.Fault{
		"slack": nil, "github": nil, "git-notes": nil,
		"opsgenie": {{Path: "spec.type", Message: "opsgenie is not served yet, and nothing is sent: use one of alertmanager, discord, generic, generic-hmac, githubdispatch, googlechat, grafana, matrix, msteams, pagerduty, slack"}},
	} {
		p := &notificationv1beta3.Provider{Spec: notificationv1beta3.ProviderSpec{Type: kind}}
		if diff := cmp.Diff(want, alerting.OfProvider(p)); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", kind, diff)
		}
	}
}

// FuzzExpressions: whatever an Alert asks for, a rule is made of it, and soon.
func FuzzExpressions(f *testing.F) {
	f.Add("(", "x")
	f.Add("((a{100}){10}){1000}", "aaa")
	f.Add(`\pL{1000}`, "é")
	f.Fuzz(func(t *testing.T, expression, message string) {
		rule := alerting.Compile(alertOf(notificationv1beta3.AlertSpec{InclusionList: []string{expression}, ExclusionList: []string{expression}}), alerting.Scope{})
		e := failure()
		e.Message = message
		if rule.Passes(e) {
			t.Error("what is excluded passes")
		}
	})
}
