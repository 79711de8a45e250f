package admission

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic/fake"
)

// heard keeps warnings.
type heard struct{ texts []string }

func (h *heard) AddWarning(_, text string) { h.texts = append(h.texts, text) }

// TestACustomizationThatCannotBeRead must not keep others from being written,
// nor itself from being corrected.
func TestACustomizationThatCannotBeRead(t *testing.T) {
	const head = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\n"
	script := func(name, kind string) string {
		return head + "metadata: {name: " + name + "}\nspec: {target: {apiVersion: example.com/v1, kind: " + kind + "}, " +
			"customizations: {retention: {luaScript: 'function Retain(desired, observed) return desired end'}}}"
	}
	const broken = head + "metadata: {name: broken}\nspec: {target: [], customizations: {}}"
	cases := map[string]struct {
		obj, old string
		grants   grants
		refused  string // part of the error; empty for none
		warned   string // part of the only warning; empty for none
	}{
		"another one is written, with a warning": {obj: script("new", "Cat"), grants: grants{"cats.example.com"}, warned: "broken cannot be read"},
		"a rival is refused nevertheless":        {obj: script("new", "Mouse"), grants: grants{"mice.example.com"}, refused: "ResourceInterpreterCustomization mouse has a script"},
		"it is corrected by an administrator":    {obj: script("broken", "Cat"), old: broken, grants: grants{"cats.example.com", "*.*"}},
		"who may not interpret all leaves it be": {obj: script("broken", "Cat"), old: broken, grants: grants{"cats.example.com"}, refused: `"broken" is forbidden`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stored []runtime.Object
			for _, text := range []string{broken, script("mouse", "Mouse")} {
				stored = append(stored, parse(t, text))
			}
			resource := schema.GroupVersionResource{Group: "config.karmada.io", Version: "v1alpha1", Resource: "resourceinterpretercustomizations"}
			plugin := NewPlugin(Options{})
			plugin.SetRESTMapper(served())
			plugin.SetAuthorizer(tc.grants)
			plugin.SetDynamicClient(fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{resource: "ResourceInterpreterCustomizationList"}, stored...))
			obj := parse(t, tc.obj)
			var old runtime.Object
			operation := admission.Create
			if tc.old != "" {
				old, operation = parse(t, tc.old), admission.Update
			}
			var ear heard
			ctx := warning.WithWarningRecorder(t.Context(), &ear)
			err := plugin.Validate(ctx, admission.NewAttributesRecord(obj, old, obj.GroupVersionKind(), "", obj.GetName(), resource, "", operation, nil, false,
				&user.DefaultInfo{Name: "alice"}), nil)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("error %v, want one about %q", err, tc.refused)
			case apierrors.IsInternalError(err):
				t.Errorf("the server takes it for its own fault: %v", err)
			}
			if tc.warned == "" && tc.refused == "" && len(ear.texts) > 0 || tc.warned != "" && (len(ear.texts) != 1 || !strings.Contains(ear.texts[0], tc.warned)) {
				t.Errorf("warnings %q, want one about %q", ear.texts, tc.warned)
			}
		})
	}
}
