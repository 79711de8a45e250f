package propagation

import (
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Lags says what a template waits for whose binding has yet to follow its policies as they are now; empty where it does,
// and where it waits because a policy says so: that is Lazy, or its overrides are missing. What runs until then is
// what was asked for before. Binding is the template's.
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
