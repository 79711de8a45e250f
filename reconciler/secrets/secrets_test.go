package secrets_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

func TestNoTextShowsASecret(t *testing.T) {
	var kept secrets.Values
	for _, value := range []string{"hunter2", "hunter2-and-more", "80", "line one\nline two\n", "tab\there", "can<a&ry>", "cn1\nry2"} {
		kept.Keep(value)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"none":                {"all is well on port 80", "all is well on port 80"},
		"one":                 {`Invalid value: "hunter2": no`, `Invalid value: "***": no`},
		"one within another":  {"hunter2-and-more, hunter2", "***, ***"},
		"a line of it":        {"at line two", "at ***"},
		"as it stands quoted": {`"tab\there"`, `"***"`},
		"escaped in JSON":     {`{"a":"can\u003ca\u0026ry\u003e"}`, `{"a":"***"}`},
		"in JSON as it is":    {`{"a":"can<a&ry>"}`, `{"a":"***"}`},
		"in JSON in quotes":   {`"{\"a\":\"can\\u003ca\\u0026ry\\u003e\"}"`, `"{\"a\":\"***\"}"`},
		"as data":             {"aHVudGVyMg==", "***"},
		"its lines joined":    {"cn1ry2", "***"},
		"a short one, quoted": {`Invalid value: "80", Invalid value: 80: no`, `Invalid value: "***", Invalid value: ***: no`},
	} {
		t.Run(name, func(t *testing.T) {
			got := kept.Clean(loop.Waiting("InvalidObject", time.Second, errors.New(tc.text)), "other")
			want := &loop.Error{Reason: "InvalidObject", Class: loop.ClassWaiting, After: time.Second, Err: errors.New(tc.want)}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if as := loop.As(got, "other"); as.Reason != want.Reason || as.Class != want.Class || as.After != want.After {
				t.Errorf("it became %+v", as)
			}
		})
	}
	if kept.Clean(nil, "other") != nil {
		t.Error("nothing became an error")
	}
}

func TestRevisionsAreNoSecret(t *testing.T) {
	var kept secrets.Values
	kept.Keep("main")
	if got, want := kept.Hide("main@sha1:12: main", "", "main@sha1:12"), "main@sha1:12: ***"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// What a server answers to a Secret, or of a value of another kind than it expected, is reported without the value.
func TestAnswersQuoteNoSecret(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "aHVudGVyMg==", "n": int64(8417230956)}, "stringData": map[string]any{"b": "canary"},
	}}
	other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	const got = "expected string, got &value.valueUnstructured{Value:"
	for name, tc := range map[string]struct {
		obj        *unstructured.Unstructured
		text, want string
	}{
		"a value under data":           {secret, "no: aHVudGVyMg==", "no: ***"},
		"it decoded":                   {secret, "no: hunter2", "no: ***"},
		"a value under stringData":     {secret, "no: canary", "no: ***"},
		"of another kind":              {other, "no: canary", "no: canary"},
		"a number":                     {secret, ".data.n: " + got + "8417230956}", ".data.n: expected string, got a number"},
		"a number of another kind":     {other, ".data.n: " + got + "1.5e+06} .data.m: " + got + "true}", ".data.n: expected string, got a number .data.m: expected string, got a boolean"},
		"a map with braces in it":      {other, ".data.n: " + got + `map[string]interface {}{"a":"}"}} and more`, ".data.n: expected string, got a map and more"},
		"a list, without its Go type":  {other, ".data: expected map, got &{[1 2]}", ".data: expected map, got a list"},
		"nothing":                      {other, ".data.n: " + got + "interface {}(nil)}", ".data.n: expected string, got nothing"},
		"text, without its Go type":    {other, ".data: expected map, got &{canary}", ".data: expected map, got text"},
		"a text that nobody can close": {other, ".data: " + got + `"canary`, ".data: expected string, got text"},
	} {
		t.Run(name, func(t *testing.T) {
			fault := errors.New(tc.text)
			err := secrets.Worded(tc.obj, fault)
			if err.Error() != tc.want {
				t.Errorf("told %q, want %q", err, tc.want)
			}
			if !errors.Is(err, fault) {
				t.Error("what was answered is lost")
			}
		})
	}
	if secrets.Worded(secret, nil) != nil {
		t.Error("nothing became an error")
	}
}

func FuzzWorded(f *testing.F) {
	f.Add(".data.n: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":\"}\"}} and more")
	f.Add(".data: expected map, got &{{")
	f.Fuzz(func(t *testing.T, text string) {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"b": "canary"}}}
		if got := secrets.Worded(obj, errors.New(text)).Error(); strings.Contains(got, "canary") {
			t.Errorf("told %q", got)
		}
	})
}

// What a cluster refuses of an object that text of a Secret was put into is reported by its fields alone.
func TestRefusalsOfMarkedObjectsQuoteNothing(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "d-canarytok3n", "annotations": map[string]any{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInName}},
		"spec":     map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "canarytok3n"}}},
	}}
	selector := field.Invalid(field.NewPath("spec", "selector"), map[string]any{"matchLabels": map[string]any{"a": "canarytok3n"}}, "field is immutable")
	key := field.Invalid(field.NewPath("data").Key("canarytok3n"), "canarytok3n", "no")
	image := field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), "")
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a field that is immutable": {
			apierrors.NewInvalid(kind, "d-canarytok3n", field.ErrorList{selector}),
			"Deployment is refused: spec.selector: Invalid value: field is immutable; what is wrong is not quoted, as text of a Secret is in it",
		},
		"a key, and a field that is missing": {
			apierrors.NewInvalid(kind, "d-canarytok3n", field.ErrorList{key, image}),
			"Deployment is refused: data[***]: Invalid value, spec.containers[0].image: Required value; what is wrong is not quoted, as text of a Secret is in it",
		},
		"an answer without causes": {errors.New(`cannot handle "d-canarytok3n": canarytok3n`), `cannot handle "***": ***`},
	} {
		t.Run(name, func(t *testing.T) {
			got := secrets.WordedFor(obj, tc.err)
			if diff := cmp.Diff(tc.want, got.Error()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if apierrors.IsInvalid(got) != apierrors.IsInvalid(tc.err) {
				t.Error("it is of another kind")
			}
		})
	}
	obj.SetAnnotations(nil)
	if err := apierrors.NewInvalid(kind, "web", field.ErrorList{selector}); !errors.Is(secrets.WordedFor(obj, err), err) || secrets.WordedFor(obj, err).Error() != err.Error() {
		t.Error("what is wrong with an object that holds no secret is told otherwise")
	}
}

// TestWhatObjectsAreCalledStays: a value shows nothing where it is a part of what everybody sees.
func TestWhatObjectsAreCalledStays(t *testing.T) {
	var kept secrets.Values
	for _, value := range []string{"shop", "db-canary", "the namespace shop is ours", "hunter2", "q7"} {
		kept.Keep(value)
	}
	for _, text := range []string{"Secret/shop/", "Secret/shop/db", "the namespace shop", `namespaces "q7"`} {
		kept.Spare(text)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"a name":                    {"Secret/shop/db: no", "Secret/shop/db: no"},
		"a namespace":               {"Secret/shop/db: the namespace shop does not exist", "Secret/shop/db: the namespace shop does not exist"},
		"the value beside it":       {`Secret/shop/db: data.user: Invalid value: "shop"`, `Secret/shop/db: data.user: Invalid value: "***"`},
		"another value":             {"Secret/shop/db: hunter2", "Secret/shop/db: ***"},
		"a longer name is a value":  {"Secret/shop/db-canary: no", "Secret/shop/***: no"},
		"a value around a name":     {"as the namespace shop is ours", "as ***"},
		"what is called otherwise":  {"Role/shop/db", "Role/***/db"},
		"a short one in its quotes": {`namespaces "q7" not found: "q7"`, `namespaces "q7" not found: "***"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kept.Hide(tc.text); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
