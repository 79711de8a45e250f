package cloudlogin

import "testing"

// FuzzAmazon: what ECR gives out can be in a header.
func FuzzAmazon(f *testing.F) {
	f.Add([]byte(`{"authorizationData": [{"authorizationToken": "QVdTOnB3", "expiresAt": 1.7e9}]}`))
	f.Add([]byte(`{"authorizationData": [{"authorizationToken": "QQo6Qg==", "expiresAt": -1e300}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		login, err := parseAmazon(answer)
		if err == nil && (!usable(login.Username) || !usable(login.Password) || login.ends.Unix() < 0) {
			t.Errorf("%q until %s", login.Username+":"+login.Password, login.ends)
		}
		_ = amazonRefusal("api", 400, answer)
	})
}
