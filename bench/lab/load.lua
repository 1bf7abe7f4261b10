-- wrk runs this script. Argument: a file with one request per line (method, path, API key and body, separated by tabs).
local requests = {}
local at = 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, key, body = line:match("^(%S+)\t(%S+)\t(%S+)\t?(.*)$")
    if body == "" then body = nil end
    local headers = { ["Authorization"] = "Bearer " .. key }
    headers["Content-Type"] = body and "application/json" or nil
    requests[#requests + 1] = wrk.format(method, path, headers, body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"failed":%d,"p50Us":%d,"p99Us":%d}\n',
    summary.requests, summary.duration / 1e6,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
