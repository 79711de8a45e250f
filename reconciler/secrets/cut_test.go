package secrets

import "testing"

// TestValuesInTextsOfOneLine: who makes one line of a text leaves out spaces, and cuts off what is too long.
func TestValuesInTextsOfOneLine(t *testing.T) {
	values := &Values{}
	values.Keep("correct  horse\n  battery\tstaple")
	values.Keep(`to"ken-0123456789`)
	values.Keep("abc")
	values.Keep("ababac-ababad")
	for text, want := range map[string]string{
		"found correct horse here":                      "found *** here",
		"found correct horse battery staple here":       "found *** here",
		`found "to\"ken-0123…: is no number`:            `found "***…: is no number`,
		`found to"ken-…`:                                "found ***…",
		"found to…, and correct  hor…":                  "found to…, and ***…",
		"found 0123456789, which is the end of a value": "found 0123456789, which is the end of a value",
		"found ababac-ababac-ab…":                       "found ababac-***…",
		"found abababa…":                                "found ab***…",
		"found ababac-ababad…":                          "found ***…",
		"…":                                             "…",
		"found nothing…":                                "found nothing…",
	} {
		if got := values.Hide(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}
