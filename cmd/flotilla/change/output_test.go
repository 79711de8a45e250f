package change

import "testing"

// TestWrongOutputOfKubectl: what kubectl says of a wrong -o is reported as other commands do.
func TestWrongOutputOfKubectl(t *testing.T) {
	for message, want := range map[string]string{
		`error: unable to match a printer suitable for the output format "nope", allowed formats are: json,name,yaml`: `there is no -o "nope" here: it is json, name or yaml`,
		`error: unexpected -o output mode: nope. We only support '-o name'`:                                           `there is no -o "nope" here: it is name`,
		`error: the disk is full`: `the disk is full`,
	} {
		if got := (fatal{message: message}).error(""); got == nil || got.Error() != want {
			t.Errorf("%s\nis told as %v, want %s", message, got, want)
		}
	}
}

// TestWhatIsNotThere: what the control plane does not have is listed by one command, which
// looks where the call did.
func TestWhatIsNotThere(t *testing.T) {
	const server = "Error from server (NotFound): "
	for name, tc := range map[string]struct{ in, message, want string }{
		"one object":          {" -n shop", server + `pods "a" not found`, `pods "a" not found: flotilla get pods -n shop -s all lists what there is, on the control plane and in the clusters`},
		"two of one kind":     {" -n shop", server + "pods \"a\" not found\n" + server + "pods \"b\" not found\n", `pods "a" not found; pods "b" not found: flotilla get pods -n shop -s all lists what there is, on the control plane and in the clusters`},
		"two kinds":           {"", server + "pods \"a\" not found\n" + server + `secrets "b" not found`, `pods "a" not found; secrets "b" not found: flotilla get pods,secrets -s all lists what there is, on the control plane and in the clusters`},
		"a kind of this hub":  {"", server + `clusters.cluster.karmada.io "a" not found`, `clusters.cluster.karmada.io "a" not found: flotilla get clusters.cluster.karmada.io lists what there is`},
		"a namespace":         {" -n shop", server + `namespaces "a" not found`, `namespaces "a" not found: flotilla get namespaces lists what there is`},
		"that of what is new": {" -n a", `error: failed to create configmap: namespaces "a" not found`, `failed to create configmap: namespaces "a" not found: flotilla get namespaces lists what there is`},
		"what a file names":   {" -A", server + `error when deleting "x.yaml": pods "a" not found`, `error when deleting "x.yaml": pods "a" not found: flotilla get pods -A -s all lists what there is, on the control plane and in the clusters`},
		"among other faults":  {"", server + "pods \"a\" not found\nError from server (Forbidden): no", `pods "a" not found` + "\nError from server (Forbidden): no (NotFound)"},
		"something else":      {"", `error: context "a" not found: no`, `context "a" not found: no`},
		"a word in capitals":  {"", `error: The "a" not found`, `The "a" not found`},
		"a kind":              {"", `error: the server doesn't have a resource type "boat"`, `the control plane knows no kind "boat": flotilla api-resources lists them`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (fatal{message: tc.message}).error(tc.in); got == nil || got.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", got, tc.want)
			}
		})
	}
}
