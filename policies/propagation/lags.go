package propagation

import (
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Lags returns what a template waits for whose binding is not yet as its policies
// want it now; until then its clusters run what was asked for before. It is empty
// where the binding is up to date, and where the template waits for a reason of
// its policy: that is Lazy, or its overrides are missing. binding is the
// template's.
func Lags(c Case, binding workv1alpha2.Binding) (string, error) {
	ref, claimed := Claimed(c.Template)
	d := Decide(c)
	switch {
	case d.Outcome == Released && claimed, d.Outcome == Carried && (!claimed || ref != RefOf(d.Policy)):
		return Awaits(c.Template), nil
	case d.Outcome != Carried:
		return "", nil
	}
	act, err := Activate(c.Template, d.Policy, binding)
	if err != nil || act.Waits || follows(c.Template, d.Policy, binding.BindingSpec()) {
		return "", err
	}
	return "waits for a change of " + Title(d.Policy) + " to be taken up", nil
}
