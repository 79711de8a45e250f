package secrets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// worded is an answer in words that may be shown.
type worded struct {
	error
	text string
}

// Error implements error.
func (w *worded) Error() string { return w.text }

// Unwrap returns the answer, for what is decided by it.
func (w *worded) Unwrap() error { return w.error }

// Worded returns what a server answered to an object that was sent, in words that show no value of it where the
// object is a Secret, and says what was found in place of what was expected without a Go type.
func Worded(obj *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	text := kindsOf(err.Error())
	if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		text = valuesOf(obj).Hide(text)
	}
	if text == err.Error() {
		return err
	}
	return &worded{error: err, text: text}
}

// WordedFor is Worded for those who do not know the values that a Kustomization put into objects: of what was
// refused of an object with the annotation, the fields are named, and what is wrong with each, and nothing is quoted.
func WordedFor(obj *unstructured.Unstructured, err error) error {
	if err == nil || obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == "" {
		return Worded(obj, err)
	}
	var values Values
	keepAll(&values, withoutIdentity(obj))
	return &worded{error: err, text: values.Hide(kindsOf(fields(obj, err)))}
}

// immutable is what may be shown of what is wrong with a field: it is of the server alone.
const immutable = ": field is immutable"

// keyed is a part of a field's path that is the object's own.
var keyed = regexp.MustCompile(`\[[^\]]*[^\]0-9][^\]]*\]`)

// fields names what was refused of an object.
func fields(obj *unstructured.Unstructured, err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil || len(answer.Status().Details.Causes) == 0 {
		return err.Error()
	}
	var out []string
	for _, cause := range answer.Status().Details.Causes {
		what, _, _ := strings.Cut(cause.Message, ":")
		if cause.Type == metav1.CauseTypeForbidden { // what follows is the server's own
			what = strings.TrimSpace(cause.Message)
		}
		if strings.HasSuffix(cause.Message, immutable) && !strings.HasSuffix(what, immutable) {
			what += immutable
		}
		out = append(out, keyed.ReplaceAllString(cause.Field, "["+hidden+"]")+": "+what)
	}
	return fmt.Sprintf("%s is refused: %s; what is wrong is not quoted, as text of a Secret is in it", obj.GetKind(), strings.Join(slices.Compact(out), ", "))
}

// withoutIdentity are the fields of an object beside what it is called.
func withoutIdentity(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "namespace"}, {"metadata", "annotations"}, {"status"}} {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	return out.Object
}

// keepAll keeps every text and number of what an object is made of.
func keepAll(values *Values, content any) {
	switch content := content.(type) {
	case string:
		values.Keep(content)
	case map[string]any:
		for _, value := range content {
			keepAll(values, value)
		}
	case []any:
		for _, item := range content {
			keepAll(values, item)
		}
	case int64, float64:
		values.Keep(fmt.Sprint(content))
	}
}

// valuesOf are the values of a Secret, encoded and not.
func valuesOf(obj *unstructured.Unstructured) *Values {
	values := &Values{}
	for _, field := range []string{"data", "stringData"} {
		keepAll(values, obj.Object[field])
	}
	data, _ := obj.Object["data"].(map[string]any)
	for _, value := range data {
		text, _ := value.(string)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			values.Keep(string(plain))
		}
	}
	return values
}

// found is how the server begins what it found in place of what it expected.
var found = regexp.MustCompile(`(expected [a-z (),]+, got )(&value\.valueUnstructured\{Value:|&\{)`)

// kindsOf says of each value that is not what was expected what it is, in place of the value.
func kindsOf(text string) string {
	var out strings.Builder
	for {
		at := found.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		value := text[at[1]:]
		end := closing(value)
		out.WriteString(text[:at[3]] + kindOf(value))
		text = strings.TrimPrefix(value[end:], "}")
	}
}

// closing is where the brace ends that a value is in: at the end of the text, if that is not known.
func closing(value string) int {
	depth := 0
	for at := 0; at < len(value); at++ {
		switch value[at] {
		case '"':
			quoted, err := strconv.QuotedPrefix(value[at:])
			if err != nil {
				return len(value)
			}
			at += len(quoted) - 1
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return at
			}
		}
	}
	return len(value)
}

func kindOf(value string) string {
	switch {
	case strings.HasPrefix(value, "map["):
		return "a map"
	case strings.HasPrefix(value, "["):
		return "a list"
	case strings.HasPrefix(value, "interface {}(nil)"), strings.HasPrefix(value, "<nil>"):
		return "nothing"
	case strings.HasPrefix(value, "true}"), strings.HasPrefix(value, "false}"):
		return "a boolean"
	}
	number, _, _ := strings.Cut(value, "}")
	if _, err := strconv.ParseFloat(number, 64); err == nil {
		return "a number"
	}
	return "text"
}
