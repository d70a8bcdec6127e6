package codecs

// ValidTraceparent says whether b has the form of a W3C traceparent: version-trace id-parent id-flags in lower-case hex,
// no version ff, no zero ids; a version above 00 may carry more after another dash.
func ValidTraceparent(b []byte) bool {
	const size = 55
	if len(b) < size || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return false
	}
	if !hexDigits(b[:2]) || !hexDigits(b[3:35]) || !hexDigits(b[36:52]) || !hexDigits(b[53:size]) {
		return false
	}
	switch string(b[:2]) {
	case "ff":
		return false
	case "00":
		if len(b) != size {
			return false
		}
	default:
		if len(b) > 512 || len(b) > size && b[size] != '-' {
			return false
		}
	}
	return !zeros(b[3:35]) && !zeros(b[36:52])
}

func hexDigits(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != '0' {
			return false
		}
	}
	return true
}
