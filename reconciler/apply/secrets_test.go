package apply_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// canaries are the values of a Secret that no text may show, in any form.
var canaries = map[string]string{
	"TOKEN": "canarytok3n", "MULTI": "cnA\nryB\nxyC", "AMP": "canary<amp>&z", "AB": "u0",
	"HEX": "0x12D687", "FLOAT": "1234567.0", "OCTAL": "007654321",
}

// logged keeps what the loop logs.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// texts returns all that people read about a Kustomization: its conditions, events and logs. The inventory and the
// history, with names of objects and digests, are for machines.
func (w *world) texts(name string, logs *logged) string {
	w.t.Helper()
	var out []string
	for _, c := range w.get(name).Status.Conditions {
		out = append(out, c.Type+": "+c.Message)
	}
	for _, h := range w.get(name).Status.History {
		out = append(out, h.LastReconciledStatus)
	}
	out = append(out, w.events.about(name)...)
	logs.mu.Lock()
	defer logs.mu.Unlock()
	for _, line := range logs.lines {
		if strings.Contains(line, `"`+name+`"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

const (
	oneJob      = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, namespace: NAMESPACE}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: IMAGE, env: [{name: A, value: \"${AMP}\"}]}]}}}\n"
	labelled    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out, namespace: NAMESPACE, labels: {x: \"LABEL\"}}\n"
	namedMap    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"c-${TOKEN}\", namespace: NAMESPACE}\n"
	withPort    = "apiVersion: v1\nkind: Service\nmetadata: {name: out, namespace: NAMESPACE}\nspec:\n  ports:\n  - port: ${PORT}\n"
	withSecret  = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: NAMESPACE}\nFIELDS\n"
	namedDeploy = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"d-${TOKEN}\", namespace: NAMESPACE}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: \"nginx:1\"}]}\n"
)

// No text shows a value from a Secret, whatever substitution does to it, and whatever the outcome is.
func TestNothingReportedShowsASecret(t *testing.T) {
	label := func(text string) []string { return []string{strings.Replace(labelled, "LABEL", text, 1)} }
	port := func(name string) []string { return []string{strings.Replace(withPort, "PORT", name, 1)} }
	secret := func(fields string) []string { return []string{strings.Replace(withSecret, "FIELDS", fields, 1)} }
	cases := map[string]struct {
		commits []string
		wait    bool
		reason  string
		says    string
		forms   []string
	}{
		"escaped in JSON": {
			commits: []string{strings.Replace(oneJob, "IMAGE", "a:1", 1), strings.Replace(oneJob, "IMAGE", "a:2", 1)}, reason: applier.ReasonImmutableField,
			says: `"Value":"***"`, forms: []string{`canary`, `amp`},
		},
		"in capitals": {commits: label("${TOKEN^^}/bad value"), reason: applier.ReasonInvalidObject, says: "***/bad value", forms: []string{"CANARY", "TOK3N"}},
		"in an address that a refusal quotes": {
			commits: label("https://bob:hunter2@reg.example/v2?token=hunter2"), reason: applier.ReasonInvalidObject,
			says: `"https://reg.example/v2"`, forms: []string{"hunter2"},
		},
		"in part":               {commits: label("${TOKEN:1}/bad value"), reason: applier.ReasonInvalidObject, says: "***/bad value", forms: []string{"anary", "tok3n"}},
		"in a default":          {commits: label("${NONE:=a-${TOKEN^^}} !"), reason: applier.ReasonInvalidObject, says: "*** !", forms: []string{"CANARY"}},
		"in a short part":       {commits: label("${TOKEN:0:2}/bad value"), reason: applier.ReasonInvalidObject, says: `"***"`, forms: []string{"ca/bad"}},
		"with lines joined":     {commits: label("${MULTI} !"), reason: applier.ReasonInvalidObject, says: "*** !", forms: []string{"cnA", "ryB", "xyC"}},
		"short, and all of it":  {commits: label("-${AB}"), reason: applier.ReasonInvalidObject, says: `"***"`, forms: []string{"-u0"}},
		"in the name of a kind": {commits: []string{namedMap}, reason: meta.ReconciliationSucceededReason, says: "c-***", forms: []string{"canary"}},
		"in a name that leaves": {
			commits: []string{namedMap + "---\n" + configMaps(3), configMaps(3)}, reason: meta.ReconciliationSucceededReason, says: "c-***", forms: []string{"canary"},
		},
		"in what is waited for":     {commits: []string{namedDeploy}, wait: true, reason: meta.ProgressingReason, says: "d-***", forms: []string{"canary"}},
		"as a hexadecimal":          {commits: port("HEX"), reason: applier.ReasonInvalidObject, says: "***", forms: []string{"1234567", "12D687"}},
		"as a float":                {commits: port("FLOAT"), reason: applier.ReasonInvalidObject, says: "***", forms: []string{"1234567", "1.234567e+06"}},
		"as an octal":               {commits: port("OCTAL"), reason: applier.ReasonInvalidObject, says: "***", forms: []string{"2054353", "7654321"}},
		"a number under stringData": {commits: secret("stringData: {password: 8417230956}"), reason: meta.BuildFailedReason, says: "got a number", forms: []string{"8417230956", "value."}},
		"a number under data":       {commits: secret("data: {password: 8417230956}"), reason: meta.BuildFailedReason, says: "got a number", forms: []string{"8417230956", "value."}},
		"a map under data":          {commits: secret("data: {password: {a: canary}}"), reason: meta.BuildFailedReason, says: "got a map", forms: []string{"canary", "value."}},
		"no base64":                 {commits: secret("data: {password: \"canary!\"}"), reason: meta.BuildFailedReason, says: "not base64", forms: []string{"canary"}},
		"a number elsewhere":        {commits: []string{labelled + "data: {x: 8417230956}\n"}, reason: applier.ReasonInvalidObject, says: "expected string, got a number", forms: []string{"8417230956", "value."}},
		"a key that is none":        {commits: secret("stringData: {\"canary key\": canaryvalue}"), reason: applier.ReasonInvalidObject, says: "db", forms: []string{"canaryvalue"}},
	}
	logs := &logged{}
	w := newWorldLogging(t, funcr.New(logs.add, funcr.Options{}))
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "vars"}, StringData: canaries})
	for at, name := range slices.Sorted(maps.Keys(cases)) {
		tc, web := cases[name], fmt.Sprintf("web-%d", at)
		t.Run(name, func(t *testing.T) {
			revision := w.commit(map[string]string{"app/x.yaml": tc.commits[0]})
			w.kustomization(web, func(spec *kustomizev1.KustomizationSpec) {
				spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
				spec.Wait = tc.wait
			})
			for _, next := range tc.commits[1:] {
				w.ready(web, revision)
				revision = w.commit(map[string]string{"app/x.yaml": next})
			}
			text := ""
			err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
				text = w.texts(web, logs)
				ready := apimeta.FindStatusCondition(w.get(web).Status.Conditions, meta.ReadyCondition)
				return ready != nil && ready.Reason == tc.reason && w.get(web).Status.LastAttemptedRevision == revision && (tc.wait || len(w.events.about(web)) >= len(tc.commits)) && strings.Contains(text, tc.says), nil
			})
			if err != nil {
				t.Errorf("%s, with %q, is not told:\n%s", tc.reason, tc.says, text)
			}
			for _, form := range tc.forms {
				if strings.Contains(text, form) {
					t.Errorf("%q is told:\n%s", form, text)
				}
			}
			w.remove(web)
		})
	}
}
