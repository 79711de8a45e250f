package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

var update = flag.Bool("update", false, "write the golden files anew")

func patchOf(steps string) string {
	return `"patchType":"JSONPatch","patch":"` + base64.StdEncoding.EncodeToString([]byte(steps)) + `"`
}

// Each operation as it goes over the wire, and what a rule makes of the answer.
func TestWire(t *testing.T) {
	const desired = `{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: shop, name: a, resourceVersion: "7"}, spec: {size: 3, text: "<&>"}, status: {size: 1}}`
	const observed = `{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: shop, name: a, resourceVersion: "9"}, spec: {size: 5}, status: {ready: 5}}`
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(`{"ready":5}`)}},
		{ClusterName: "m2", AppliedMessage: "refused"},
	}
	cases := map[string]struct {
		reply string
		ask   func(r kinds.Rules) (any, error)
	}{
		"replicas": {
			`"replicas":3,"replicaRequirements":{"resourceRequest":{"cpu":"100m"}}`,
			func(r kinds.Rules) (any, error) {
				n, req, err := r.Replicas(object(t, desired))
				return map[string]any{"replicas": n, "requirements": req}, err
			},
		},
		"components": {
			`"components":[{"name":"jm","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1"}}},{"name":"tm","replicas":2}]`,
			func(r kinds.Rules) (any, error) { return r.Components(object(t, desired)) },
		},
		"revise": {
			patchOf(`[{"op":"replace","path":"/spec/size","value":7}]`),
			func(r kinds.Rules) (any, error) { return r.Revise(object(t, desired), 7) },
		},
		"retain": {
			patchOf(`[{"op":"remove","path":"/spec/size"}]`),
			func(r kinds.Rules) (any, error) { return r.Retain(object(t, desired), object(t, observed)) },
		},
		"aggregate": {
			patchOf(`[{"op":"replace","path":"/status","value":{"ready":5,"of":2}}]`),
			func(r kinds.Rules) (any, error) { return r.Aggregate(object(t, desired), items) },
		},
		"dependencies": {
			`"dependencies":[{"apiVersion":"v1","kind":"Secret","namespace":"shop","name":"s"},{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","labelSelector":{"matchLabels":{"a":"b"}}}]`,
			func(r kinds.Rules) (any, error) { return r.Dependencies(object(t, desired)) },
		},
		"status": {
			`"rawStatus":{"ready":5,"big":9007199254740993}`,
			func(r kinds.Rules) (any, error) { return r.Reflect(object(t, observed)) },
		},
		"health": {
			`"healthy":true`,
			func(r kinds.Rules) (any, error) { return r.Health(object(t, observed)) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var header http.Header
			s := serve(t, func(w http.ResponseWriter, r *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
				header = r.Header.Clone()
				reply(tc.reply)(w, r, asked)
			})
			l := start(t, webhook.Options{})
			l.use(hookFor(s))
			got, err := awaitAnswer(l, func() (any, error) { return tc.ask(l.Rules(widgets)) })
			if err != nil {
				t.Fatal(err)
			}
			if kind := header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("content type = %q", kind)
			}
			golden(t, name, s.seen[0], tc.reply, got)
		})
	}
}

// golden compares a question, without what differs each time, and what was made
// of the answer.
func golden(t *testing.T, name string, question []byte, answer string, made any) {
	t.Helper()
	var in configv1alpha1.ResourceInterpreterContext
	if err := json.Unmarshal(question, &in); err != nil {
		t.Fatal(err)
	}
	question = bytes.ReplaceAll(question, []byte(in.Request.UID), []byte("THE-UID"))
	var out bytes.Buffer
	_, _ = out.WriteString("question:\n")
	if err := json.Indent(&out, question, "", "  "); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(&out, "\nanswer:\n%s\nmade of it:\n%s\n", envelope("THE-UID", `"successful":true,`+answer), encoded)
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// What servers answer wrongly is an error of that one question.
func TestBadAnswers(t *testing.T) {
	health := func(t *testing.T, r kinds.Rules) error { _, err := r.Health(widget(t, "a")); return err }
	replicas := func(t *testing.T, r kinds.Rules) error { _, _, err := r.Replicas(widget(t, "a")); return err }
	components := func(t *testing.T, r kinds.Rules) error { _, err := r.Components(widget(t, "a")); return err }
	revise := func(t *testing.T, r kinds.Rules) error { _, err := r.Revise(widget(t, "a"), 2); return err }
	reflected := func(t *testing.T, r kinds.Rules) error { _, err := r.Reflect(widget(t, "a")); return err }
	dependencies := func(t *testing.T, r kinds.Rules) error { _, err := r.Dependencies(widget(t, "a")); return err }
	aggregate := func(t *testing.T, r kinds.Rules) error { _, err := r.Aggregate(widget(t, "a"), nil); return err }
	const whole = "successful"
	cases := map[string]struct {
		// reply is fields of a response; where it has "successful" or no quotes, all of
		// it beside the uid.
		reply string
		ask   func(*testing.T, kinds.Rules) error
		want  string
	}{
		"not successful, with code and message": {`"successful":false,"status":{"code":403,"message":"not\nallowed"}`, health, "it could not answer: not allowed (code 403)"},
		"not successful, without a reason":      {`"successful":false`, health, "it could not answer, and does not say why"},
		"not successful, with a very long reason": {
			`"successful":false,"status":{"message":"` + strings.Repeat("é", 1000) + `"}`, health,
			"it could not answer: " + strings.Repeat("é", 128) + "…",
		},
		"no replicas":                            {`"healthy":true`, replicas, "its answer has no response.replicas"},
		"less than no replicas":                  {`"replicas":-1`, replicas, "response.replicas is no number of replicas: -1"},
		"no health":                              {`"replicas":1`, health, "its answer has no response.healthy"},
		"no status":                              {`"replicas":1`, reflected, "its answer has no response.rawStatus"},
		"a status that is null":                  {`"rawStatus":null`, reflected, "its answer has no response.rawStatus"},
		"a status that is a list":                {`"rawStatus":[1]`, reflected, "response.rawStatus is no object"},
		"a component without a name":             {`"components":[{"name":"","replicas":1}]`, components, "response.components[0].name must be there, and differ from the others"},
		"two components of one name":             {`"components":[{"name":"a","replicas":1},{"name":"a","replicas":1}]`, components, "response.components[1].name must be there, and differ from the others"},
		"a component with less than no replicas": {`"components":[{"name":"a","replicas":-1}]`, components, "response.components[0].replicas is no number of replicas: -1"},
		"a dependency without a kind":            {`"dependencies":[{"apiVersion":"v1","name":"a"}]`, dependencies, "response.dependencies[0] has no apiVersion or no kind"},
		"a dependency that is nothing":           {`"dependencies":[{"apiVersion":"v1","kind":"Secret"}]`, dependencies, "response.dependencies[0] has neither name nor labelSelector"},
		"a dependency with a wrong selector": {
			`"dependencies":[{"apiVersion":"v1","kind":"Secret","labelSelector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}]`, dependencies,
			`response.dependencies[0].labelSelector: "Is" is not a valid label selector operator`,
		},
		"a patch without a type":           {`"patch":"W10="`, revise, "its answer has a response.patch and no response.patchType"},
		"a type without a patch":           {`"patchType":"JSONPatch"`, revise, "its answer has a response.patchType and no response.patch"},
		"a patch of another type":          {`"patchType":"Merge","patch":"e30="`, revise, `response.patchType is "Merge": JSONPatch is known`},
		"a patch that is none":             {patchOf(`{}`), revise, "response.patch cannot be read: json: cannot unmarshal object into Go value of type jsonpatch.Patch"},
		"a patch of what is not there":     {patchOf(`[{"op":"remove","path":"/spec/gone"}]`), revise, "response.patch cannot be applied: error in remove for path: '/spec/gone'"},
		"a patch without an operation":     {patchOf(`[{}]`), revise, "response.patch cannot be read: invalid operation {}"},
		"a patch that renames":             {patchOf(`[{"op":"replace","path":"/metadata/name","value":"b"}]`), revise, "response.patch makes the object another one: it changes its kind, name or namespace"},
		"a patch that makes it a list":     {patchOf(`[{"op":"replace","path":"","value":[]}]`), revise, "response.patch makes the object something else"},
		"a patch that copies without end":  {patchOf(copies(40)), revise, "response.patch cannot be applied: Unable to complete the copy, the accumulated size increase"},
		"a patch with too many steps":      {patchOf(`[` + strings.Repeat(`{"op":"test","path":"/spec/size","value":3},`, 10_000) + `{"op":"test","path":"/spec/size","value":3}]`), revise, "response.patch has more than 10000 operations"},
		"a patch that makes status a list": {patchOf(`[{"op":"add","path":"/status","value":[]}]`), aggregate, "response.patch makes the status no object"},
		"numbers that are none":            {`"replicas":"three"`, replicas, "its answer cannot be read: json: cannot unmarshal string into Go struct field ResourceInterpreterResponse.response.replicas of type int32"},
		"no response":                      {whole + `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext"}`, health, "its answer has no response"},
		"another kind":                     {whole + `{"apiVersion":"v1","kind":"Pod"}`, health, "its answer is no ResourceInterpreterContext of config.karmada.io/v1alpha1"},
		"another kind without a version":   {whole + `{"kind":"Pod","response":{"successful":true,"healthy":true}}`, health, "its answer is no ResourceInterpreterContext of config.karmada.io/v1alpha1"},
		"another version without a kind":   {whole + `{"apiVersion":"config.karmada.io/v1","response":{"successful":true,"healthy":true}}`, health, "its answer is no ResourceInterpreterContext of config.karmada.io/v1alpha1"},
		"no type, and no response":         {whole + `{}`, health, "its answer has no response"},
		"no type, to another question":     {whole + `{"response":{"uid":"another","successful":true,"healthy":true}}`, health, "its answer is to another question: response.uid differs"},
		"garbage":                          {whole + "\x00\xff<html>", health, `its answer cannot be read: invalid character '\x00' looking for beginning of value`},
		"nothing":                          {whole, health, "its answer cannot be read: unexpected end of JSON input"},
		"brackets without end":             {whole + strings.Repeat("[", 1<<20), health, "its answer cannot be read: invalid character '[' exceeded max depth"},
		"an answer to another question":    {whole + envelope("another", `"successful":true,"healthy":true`), health, "its answer is to another question: response.uid differs"},
		"an answer without an end to it":   {whole + `"` + strings.Repeat("x", 5<<20), health, "its answer is larger than 4194304 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
				switch body, all := strings.CutPrefix(tc.reply, whole); {
				case all:
					_, _ = io.WriteString(w, body)
				case strings.HasPrefix(tc.reply, `"successful"`):
					_, _ = io.WriteString(w, envelope(asked.UID, tc.reply))
				default:
					reply(tc.reply)(w, r, asked)
				}
			})
			l := start(t, webhook.Options{})
			l.use(hookFor(s))
			_, err := awaitAnswer(l, func() (struct{}, error) { return struct{}{}, tc.ask(t, l.Rules(widgets)) })
			got := strings.TrimPrefix(text(err), "webhook test/widgets.example.com: ")
			if !strings.HasPrefix(got, tc.want) || err == nil || len(got) > 400 {
				t.Errorf("error\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestAnswersWithoutTypes are those of servers made with Karmada's library.
func TestAnswersWithoutTypes(t *testing.T) {
	for name, types := range map[string]string{
		"neither of the two": ``, "empty ones": `"apiVersion":"","kind":"",`,
		"no kind": `"apiVersion":"config.karmada.io/v1alpha1",`, "no version": `"kind":"ResourceInterpreterContext",`,
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
				_, _ = fmt.Fprintf(w, `{%s"response":{"uid":%q,"successful":true,"replicas":3}}`, types, asked.UID)
			})
			l := start(t, webhook.Options{})
			l.use(hookFor(s))
			got, err := awaitAnswer(l, func() (int32, error) {
				n, _, err := l.Rules(widgets).Replicas(widget(t, "a"))
				return n, err
			})
			if got != 3 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

// copies is a patch that doubles a value again and again.
func copies(times int) string {
	steps := []string{`{"op":"add","path":"/a","value":["0123456789abcdef"]}`}
	for range times {
		steps = append(steps, `{"op":"copy","from":"/a","path":"/a/-"}`)
	}
	return "[" + strings.Join(steps, ",") + "]"
}

// Without a patch, nothing is to be changed; the object is a copy all the same.
func TestNoPatch(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, asked *configv1alpha1.ResourceInterpreterRequest) {
		_, _ = io.WriteString(w, envelope(asked.UID, `"successful":true`))
	})
	l := start(t, webhook.Options{})
	l.use(hookFor(s))
	in := widget(t, "a")
	got, err := awaitAnswer(l, func() (kinds.Object, error) { return l.Rules(widgets).Revise(in, 2) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in.Object, got.Object); diff != "" || got == in {
		t.Errorf("same object: %v; revised (-want +got):\n%s", got == in, diff)
	}
}
