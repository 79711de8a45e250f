package cloudtoken

import (
	"strings"
	"testing"
	"time"
)

// FuzzAnswer: what a server gives out can be in a header, and ends within an hour.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"access_token": "a", "expires_in": 3599, "token_type": "Bearer"}`))
	f.Add([]byte(`{"access_token": "a\r\nb", "expires_in": -1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		now := time.Unix(0, 0)
		token, ends, err := parseAnswer(body, now)
		if err == nil && (token == "" || strings.ContainsAny(token, "\r\n ") || ends.Before(now) || ends.Sub(now) > time.Hour) {
			t.Errorf("%q until %s", token, ends)
		}
	})
}
