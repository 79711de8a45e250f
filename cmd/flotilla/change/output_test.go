package change

import "testing"

// TestWrongOutputOfKubectl: what kubectl says of a wrong -o is told as other commands do.
func TestWrongOutputOfKubectl(t *testing.T) {
	for message, want := range map[string]string{
		`error: unable to match a printer suitable for the output format "nope", allowed formats are: json,name,yaml`: `there is no -o "nope" here: it is json, name or yaml`,
		`error: unexpected -o output mode: nope. We only support '-o name'`:                                           `there is no -o "nope" here: it is name`,
		`error: the disk is full`: `the disk is full`,
	} {
		if got := (fatal{message: message}).error(); got == nil || got.Error() != want {
			t.Errorf("%s\nis told as %v, want %s", message, got, want)
		}
	}
}
